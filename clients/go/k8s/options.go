// Package k8s has controllers of Kubernetes led by an election of Sidekeeper, in place of a Lease of the API server. It is for client-go and
// controller-runtime, which take a Lock, and for programs without either, which call Run.
//
// client-go's own election promises no more than that one controller leads most of the time: a leader that was frozen goes on
// for seconds beside the next one. Here a term is valid until a known time, and a process that may still act for it then ends before:
//
//   - When less than Options.Grace is left, or the leader is asked to yield, the context of what acts ends.
//   - When less than Options.Margin is left and it has not ended, the process does.
//   - What a process does after it was frozen, before anything of this package could run, meets a Gate: no write leaves it.
//
// A write that has left the process is out of its hands. The next leader waits for Options.Settle before it begins, in which what the one before
// has sent arrives or is given up. What must hold even against a write that arrives later takes the fencing token of the term.
package k8s

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Options say how to lead. Only Candidate is needed.
type Options struct {
	Candidate string // the candidate's name, such as the pod's: 1 to 128 bytes, another one for each candidate of an election
	Value     string // what the leader shows to those who observe the election: at most 1 KiB
	Metadata  map[string]string

	// Grace is how much of its validity is left when a term that cannot be confirmed is at risk, and what acts for it must stop. 0 is a
	// third of what is valid when the term begins.
	Grace time.Duration
	// Margin is how much of its validity is left when the process ends if something still acts for the term. 0 is a third of the
	// grace, and a second at most.
	Margin time.Duration
	// Settle is how long an elected leader waits before it begins, for what the one before has sent. 0 is a second; less than 0, nothing.
	Settle time.Duration

	Gate *Gate        // what lets writes pass only while the process leads; nil, nothing does
	Log  *slog.Logger // where the elector's events go; nil, nowhere

	// Exit ends the process, whatever still runs in it. It is called at most once for a term, and why is for people. nil says so on the
	// standard error and exits with ExitCode.
	Exit func(why error)
}

// ExitCode is what a process exits with that has ended because its term was about to: the same as with `sidekeeper elect run`.
const ExitCode = 70

const (
	usualSettle = time.Second
	mostMargin  = time.Second
	// complaintTime is how long the standard error may take to read why the process ends.
	complaintTime = 50 * time.Millisecond
)

func (o Options) campaign() sidekeeper.CampaignOptions {
	return sidekeeper.CampaignOptions{
		Candidate: o.Candidate, Value: o.Value, Metadata: o.Metadata,
		AcknowledgeOnRelease: true, // what acts may go on for a while after a loss
	}
}

// thresholds are the grace and the margin of a term that is valid for so long when it begins.
func (o Options) thresholds(validFor time.Duration) (grace, margin time.Duration) {
	grace = cmp.Or(o.Grace, validFor/3)
	return grace, cmp.Or(o.Margin, min(grace/3, mostMargin))
}

func (o Options) settle() time.Duration { return max(cmp.Or(o.Settle, usualSettle), 0) }

func (o Options) exit(why error) {
	if o.Exit != nil {
		o.Exit(why)
		return
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		fmt.Fprintln(os.Stderr, "sidekeeper: the process ends:", why)
	}()
	select {
	case <-told:
	case <-time.After(complaintTime): // no program reads the standard error
	}
	os.Exit(ExitCode)
}

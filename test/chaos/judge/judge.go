// Package judge says whether what the processes of a fault test have seen can be, if Sidekeeper keeps its promises.
//
// Each checker proves something from the events of one round, and from the ensemble's own logs where there are some: that
// a lock had two holders, that a number was handed out twice. It accuses only where the events leave no doubt. What a
// process knew is put at the latest moment at which it can have known it, where that speaks for it, and at the
// earliest where that does; a process that was killed owes nothing; what had no answer may have been done or not.
package judge

import (
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// A Round is what is known of one round.
type Round struct {
	Events  []history.Event         // in the order of their times, as history.ReadDirectory returns them
	Log     *txnlog.Log             // from before the round to its end; nil if there is none
	Residue *Residue                // what was left; nil if nobody looked
	Ahead   map[int64]time.Duration // how far the leader's clock was ahead of the machine's, by its epoch
}

// A Residue is what was found when all callers had ended and had had the time to be forgotten.
type Residue struct {
	// Nodes are those below the roots that nobody should have left there.
	Nodes []string
	// Sessions is how many the ensemble had, and Expected how many it should have had.
	Sessions, Expected int
	Processes          []Process
}

// A Process is how much one process, such as a sidecar, used before the round and after it.
type Process struct {
	Name                                string
	GoroutinesBefore, GoroutinesAfter   int
	DescriptorsBefore, DescriptorsAfter int
}

// A Verdict is what was proved.
type Verdict struct {
	Violations []Violation
	// Invalid says why the round proves nothing: it is to be run again. Violations count all the same.
	Invalid string
	// Unchecked is what could not be looked at, since there was nothing to look at it with.
	Unchecked []string

	Grants int
	// Epochs is how many places owned a lock, one after the other or together, by the ensemble's logs.
	Epochs int
	// ForcedHandovers is how many grants came after a hold that its holder had not given up; Margins is how long after
	// the holder was last sure of it the next one was sure, for those.
	ForcedHandovers int
	Margins         []time.Duration
	// Losses is how many holds and memberships were lost since their lease was, or the connection to the sidecar, and
	// NeedlessLosses how many of them without a fault that explains it.
	Losses, NeedlessLosses int
	// Numbers is how many numbers of sequences were handed out, Configuration how many calls of the configuration had an
	// answer, and Views how many messages of watches were looked at.
	Numbers, Configuration, Views int
	// Guarded is how many writes were carried out that a lock guarded, and TooLate how many that none did when their lock was not theirs any
	// more, both by the ensemble's logs.
	Guarded, TooLate int
	// Delayed is how many grants came after a hold with a delay that its holder had not given up.
	Delayed int
	// Deliveries is how often an item of a queue was delivered, and Items how many were removed by the ensemble's logs.
	Deliveries, Items int
	// Shared is how often a member of a set had an item, and Idle how long the item had no holder before that.
	Shared int
	Idle   []time.Duration
	// Borne is how often a caller bore a number of a pool, and Rested how often another was granted one that its caller had not given up.
	Borne, Rested int
	// Passed is how often a caller was let pass a barrier, and Entries how often one entered a double barrier.
	Passed, Entries int
	// Ticks is how many ticks of schedules have begun by the ensemble's logs, Runs how many runs, Repeated how many attempts followed one
	// that was lost, and Missed how many ticks are noted as missed.
	Ticks, Runs, Repeated, Missed int
	// Restarts is how often a sidecar was replaced so soon that it had to cost nothing, in rounds in which nothing else went wrong. Outlived is
	// what its callers had then and kept, added up over all times, and Lost what they lost; Pauses is how long after the new one listened each
	// holder and member was told that it goes on.
	Restarts       int
	Outlived, Lost Standing
	Pauses         []time.Duration
}

// A Standing is a number of what stands on leases.
type Standing struct {
	Holds   int `json:"holds"`
	Members int `json:"members"`
	Places  int `json:"places"` // of those who wait
}

// All is how many there are.
func (s *Standing) All() int { return s.Holds + s.Members + s.Places }

// Add adds others.
func (s *Standing) Add(others Standing) {
	s.Holds += others.Holds
	s.Members += others.Members
	s.Places += others.Places
}

// A Violation is a promise that was not kept.
type Violation struct {
	Checker Checker `json:"checker"`
	Text    string  `json:"text"`
}

// Checker names what was checked.
type Checker string

// The checkers.
const (
	Truth         Checker = "C1 server truth"
	Belief        Checker = "C2 belief"
	Effects       Checker = "C3 effects and tokens"
	Fairness      Checker = "C4 first come, first served"
	Leftovers     Checker = "C5 residue"
	Numbers       Checker = "C6 sequences"
	Configuration Checker = "C7 configuration"
	Watches       Checker = "C8 watches"
	Membership    Checker = "C9 membership"
	Losses        Checker = "C10 losses"
	Guards        Checker = "C13 guards"
	Delays        Checker = "C14 delays"
	Restarts      Checker = "C15 restarts"
	Queues        Checker = "C16 queues"
	Barriers      Checker = "C17 barriers"
	Schedules     Checker = "C18 schedules"
	Items         Checker = "C19 items"
	Pools         Checker = "C20 numbers of pools"
)

var checks = []func(*evidence, *Verdict){
	checkRound, checkTruth, checkBelief, checkEffects, checkTokens, checkFairness, checkLeftovers, checkNumbers, checkConfiguration,
	checkFreshness, checkWatches, checkMembership, checkLosses, checkGuards, checkDelays, checkRestarts,
	checkQueues, checkBarriers, checkSchedules, checkItems, checkPools,
}

// Judge looks at a round with all checkers.
func Judge(round Round) Verdict {
	e := gather(round)
	var v Verdict
	for _, check := range checks {
		check(e, &v)
	}
	return v
}

func (v *Verdict) accusef(checker Checker, format string, arguments ...any) {
	v.Violations = append(v.Violations, Violation{checker, fmt.Sprintf(format, arguments...)})
}

func (v *Verdict) invalidatef(format string, arguments ...any) {
	if v.Invalid == "" {
		v.Invalid = fmt.Sprintf(format, arguments...)
	}
}

// checkRound says whether the round was brought to its end in a way that shows something.
func checkRound(e *evidence, v *Verdict) {
	switch {
	case e.began == nil:
		v.invalidatef("nothing says that it began, and how")
	case e.quiet == 0:
		v.invalidatef("it was not brought to its end")
	case e.tombstone != history.OK:
		v.invalidatef("the last operation did not succeed: %q", e.tombstone)
	}
	switch {
	case e.log == nil:
		v.Unchecked = append(v.Unchecked, "there are no transaction logs")
	case len(e.log.Faults) > 0:
		v.invalidatef("ZooKeeper's servers do not agree: %q, and so on: %d", e.log.Faults[0], len(e.log.Faults))
	case len(e.log.Gaps) > 0:
		v.invalidatef("the transaction logs are not complete: %s, and so on: %d", e.log.Gaps[0], len(e.log.Gaps))
	}
	if e.residue == nil {
		v.Unchecked = append(v.Unchecked, "nobody looked for residue")
	}
}

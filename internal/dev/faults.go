package dev

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/service"
)

// Faults are what goes wrong from the start, again and again. The zero value is nothing.
type Faults struct {
	SuspendFor   time.Duration // how long the ensemble is silent …
	SuspendEvery time.Duration // … and how often; 0 never
	ExpireAfter  time.Duration // how long after a lease was opened it expires; 0 never
	GrantDelay   time.Duration // how much later than its turn a lock is granted
}

// FaultsHelp is what ParseFaults understands.
const FaultsHelp = "suspend=5s/30s (the ensemble is silent for the first 5s of every 30s, the first time after 30s). " +
	"expire-lease=1m (every lease expires when it is a minute old). delay-grants=2s (locks are granted 2s late)"

// ParseFaults reads faults, each `name=value`.
func ParseFaults(words []string) (Faults, error) {
	var f Faults
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if err := f.parse(name, value); err != nil {
			return Faults{}, fmt.Errorf("%q: %w; faults are %s", word, err, FaultsHelp)
		}
	}
	return f, nil
}

func (f *Faults) parse(name, value string) (err error) {
	switch name {
	case "suspend":
		silent, every, _ := strings.Cut(value, "/")
		if f.SuspendFor, err = parseDuration(silent); err == nil {
			f.SuspendEvery, err = parseDuration(every)
		}
		if err == nil && f.SuspendFor >= f.SuspendEvery {
			err = fmt.Errorf("%v is not less than %v", f.SuspendFor, f.SuspendEvery)
		}
	case "expire-lease":
		f.ExpireAfter, err = parseDuration(value)
	case "delay-grants":
		f.GrantDelay, err = parseDuration(value)
	default:
		err = fmt.Errorf("there is no fault %q", name)
	}
	return err
}

func parseDuration(text string) (time.Duration, error) {
	duration, err := time.ParseDuration(text)
	if err != nil || duration <= 0 {
		return 0, fmt.Errorf("%q is not a duration such as 5s", text)
	}
	return duration, nil
}

// faults are what can be done to the ensemble, and what is to be done again and again.
type faults struct {
	Faults

	memory *embedded.Ensemble
	server *embedded.Server
	delay  atomic.Int64 // of grants, as a time.Duration
}

var _ service.Faults = (*faults)(nil)

func newFaults(memory *embedded.Ensemble, server *embedded.Server, from Faults) *faults {
	f := &faults{Faults: from, memory: memory, server: server}
	f.DelayGrants(from.GrantDelay)
	return f
}

// run suspends the ensemble from time to time until ctx ends. Then it must answer, or nobody could take leave of it.
func (f *faults) run(ctx context.Context) {
	defer f.Suspend(0)
	var due <-chan time.Time
	if f.SuspendEvery > 0 {
		ticker := time.NewTicker(f.SuspendEvery)
		defer ticker.Stop()
		due = ticker.C
	}
	for {
		select {
		case <-due:
			f.Suspend(f.SuspendFor)
		case <-ctx.Done():
			return
		}
	}
}

// Suspend implements service.Faults.
func (f *faults) Suspend(duration time.Duration) { f.server.Suspend(duration) }

// DelayGrants implements service.Faults.
func (f *faults) DelayGrants(delay time.Duration) { f.delay.Store(int64(delay)) }

// Expire implements service.Faults.
func (f *faults) Expire(expired service.Session) { expired.(*session).expire() }

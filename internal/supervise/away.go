package supervise

import (
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// shortAbsence is for how long a sidecar may be away before a person is told: one that is started anew is back by then.
const shortAbsence = time.Second

// An Away tells a person, once, that the sidecar or the ensemble is away and is waited for.
type Away struct {
	mu      sync.Mutex
	say     func(string, ...any) // nil if there is nothing to say
	address string
	since   time.Time // zero before the first attempt has failed
}

// Tell has the next absence told; with nil, none. A nil Away tells nothing.
func (a *Away) Tell(say func(string, ...any), address string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.say, a.address, a.since = say, address, time.Time{}
}

// Failed is for sidekeeper.WithAbsence.
func (a *Away) Failed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.since.IsZero():
		a.since = time.Now()
	case a.say != nil && time.Since(a.since) >= shortAbsence:
		a.say("waiting for the sidecar: %s", exit.Explain(err, a.address))
		a.say = nil
	}
}

package supervise

import (
	"errors"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
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

// Failed is for sidekeeper.WithAbsence. A sidecar that is there and cannot grant is told of at once.
func (a *Away) Failed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = time.Now()
	}
	if a.say != nil && (time.Since(a.since) >= shortAbsence || errors.Is(err, sidekeeper.ErrNotRecorded)) {
		a.say("waiting for the sidecar: %s", exit.Explain(err, a.address))
		a.say = nil
	}
}

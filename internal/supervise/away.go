//go:build !windows

package supervise

import "time"

// silentFor is for how long a sidecar is away before a person is told: one that is started anew is back by then.
const silentFor = time.Second

// An away tells a person, once, that the sidecar is away.
type away struct {
	say     func(string, ...any) // nil if nobody is told, or has been
	address string
	since   time.Time // zero while the sidecar can be reached
}

func (a *away) dialled(err error) {
	switch {
	case err == nil:
		a.since = time.Time{}
	case a.since.IsZero():
		a.since = time.Now()
	case a.say != nil && time.Since(a.since) >= silentFor:
		a.say("cannot reach the sidecar at %s, and waits for it: %v", a.address, err)
		a.say = nil
	}
}

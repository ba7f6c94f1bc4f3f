package sidekeeper

import "time"

// A clock counts validity.
type clock interface {
	// now is the time since some fixed instant. It goes on while the machine is suspended, where the system can tell.
	now() time.Duration

	// alarm is a channel that gets ready when now has reached at, or sooner; stop gives it up.
	alarm(at time.Duration) (ready <-chan time.Time, stop func() bool)
}

// longestNap bounds how late a deadline is noticed after the machine was suspended: Go's timers stand still meanwhile.
const longestNap = 250 * time.Millisecond

type systemClock struct{}

func (systemClock) now() time.Duration { return systemTime() }

func (c systemClock) alarm(at time.Duration) (<-chan time.Time, func() bool) {
	timer := time.NewTimer(min(at-c.now(), longestNap))
	return timer.C, timer.Stop
}

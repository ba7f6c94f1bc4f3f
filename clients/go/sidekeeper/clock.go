package sidekeeper

import "time"

// A clock counts validity.
type clock interface {
	// now is the time since some fixed instant. It goes on while the machine is suspended, where the system can tell.
	now() time.Duration

	// coarseness is how far now may be behind. It is taken off of what is valid.
	coarseness() time.Duration

	// alarm is a channel that gets ready when now has reached at, or sooner; stop gives it up.
	alarm(at time.Duration) (ready <-chan time.Time, stop func() bool)

	// after calls ring when this much time has passed in which the machine was not suspended; stop gives it up.
	after(pause time.Duration, ring func()) (stop func() bool)
}

// longestNap bounds how late a deadline is noticed after the machine was suspended: Go's timers stand still meanwhile.
const longestNap = 250 * time.Millisecond

// A systemClock is read by systemTime, but in tests.
type systemClock struct{ read func() time.Duration }

func (c systemClock) now() time.Duration { return c.read() }

func (systemClock) coarseness() time.Duration { return coarse }

func (c systemClock) alarm(at time.Duration) (<-chan time.Time, func() bool) {
	timer := time.NewTimer(min(at-c.now(), longestNap))
	return timer.C, timer.Stop
}

func (systemClock) after(pause time.Duration, ring func()) func() bool {
	return time.AfterFunc(pause, ring).Stop
}

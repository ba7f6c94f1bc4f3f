package lease

import (
	"cmp"
	"slices"
	"time"
)

// Clocks is what part of a time that others count, on a clock that may be slow, is to be waited for in addition, on one that may be fast:
// each is right within 1 %.
const Clocks = 50

// Assured is who was told that something is valid, and until when they may count on it: for each connection the latest instant, in the order
// of the connections.
type Assured []assurance

type assurance struct {
	on    Connection
	until Instant
}

// Tell notes that a validity is told over a connection. What is over by now is forgotten. It uses up a.
func (a Assured) Tell(now Instant, on Connection, validity time.Duration) Assured {
	if validity <= 0 || on == 0 {
		return a
	}
	a = slices.DeleteFunc(a, func(old assurance) bool { return old.until < now })
	return a.extended(assurance{on, now + Instant(validity+validity/Clocks)})
}

func (a Assured) extended(by assurance) Assured {
	at, known := slices.BinarySearchFunc(a, by, func(a, b assurance) int { return cmp.Compare(a.on, b.on) })
	if !known {
		return slices.Insert(a, at, by)
	}
	a[at].until = max(a[at].until, by.until)
	return a
}

// And joins what was noted of two things: of each connection the later instant.
func (a Assured) And(b Assured) Assured {
	joined := slices.Clone(a)
	for _, each := range b {
		joined = joined.extended(each)
	}
	return joined
}

// Without leaves a connection out.
func (a Assured) Without(on Connection) Assured {
	return slices.DeleteFunc(slices.Clone(a), func(each assurance) bool { return each.on == on })
}

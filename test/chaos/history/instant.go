package history

import "time"

// An Instant is a reading of the clock that all processes of a machine share, in nanoseconds. On Linux it is CLOCK_BOOTTIME.
type Instant int64

// Add is d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Since is how long it is from other to i.
func (i Instant) Since(other Instant) time.Duration { return time.Duration(i - other) }

package history

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads the clock.
func Now() Instant { return read(unix.CLOCK_BOOTTIME) }

// Ahead is how far the clock is ahead of the one that stands still while the machine is suspended, which is all that some languages read.
func Ahead() time.Duration {
	before, other, after := Now(), read(unix.CLOCK_MONOTONIC), Now()
	if other >= before && other <= after {
		return 0
	}
	return before.Since(other) + after.Since(before)/2
}

func read(clock int32) Instant {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic("the kernel lacks a clock: " + err.Error())
	}
	return Instant(t.Nano())
}

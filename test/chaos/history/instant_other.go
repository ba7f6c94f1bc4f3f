//go:build !linux

package history

import "golang.org/x/sys/unix"

// Now reads the clock.
func Now() Instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("the kernel has no CLOCK_MONOTONIC: " + err.Error())
	}
	return Instant(t.Nano())
}

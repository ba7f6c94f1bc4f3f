package history

import "golang.org/x/sys/unix"

// Now reads the clock.
func Now() Instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("the kernel has no CLOCK_BOOTTIME: " + err.Error())
	}
	return Instant(t.Nano())
}

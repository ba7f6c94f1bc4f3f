package zookeeper

import "golang.org/x/sys/unix"

// now reads CLOCK_MONOTONIC, which on macOS goes on during sleep.
func now() instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("the kernel has no CLOCK_MONOTONIC: " + err.Error())
	}
	return instant(t.Nano())
}

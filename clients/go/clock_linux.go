package sidekeeper

import (
	"time"

	"golang.org/x/sys/unix"
)

// systemTime reads CLOCK_BOOTTIME, which counts suspended time. A kernel without it (before 2.6.39) runs no Go program.
func systemTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("sidekeeper: no CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(now.Nano())
}

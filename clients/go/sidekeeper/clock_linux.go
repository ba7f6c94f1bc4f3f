package sidekeeper

import (
	"time"

	"golang.org/x/sys/unix"
)

// coarse is nothing: it tells nanoseconds.
const coarse = 0

// systemTime reads CLOCK_BOOTTIME, which counts suspended time. A kernel without it (before 2.6.39) runs no Go program.
func systemTime() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }

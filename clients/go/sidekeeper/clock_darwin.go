package sidekeeper

import (
	"time"

	"golang.org/x/sys/unix"
)

// coarse is that of CLOCK_MONOTONIC, which tells microseconds.
const coarse = time.Microsecond

// systemTime reads CLOCK_MONOTONIC, which on macOS goes on during sleep; Go's own clock does not.
func systemTime() time.Duration { return readClock(unix.CLOCK_MONOTONIC) }

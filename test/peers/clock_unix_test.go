//go:build unix && !darwin

package peers

import "golang.org/x/sys/unix"

// machineClock is the one that Java's System.nanoTime and Python's time.monotonic_ns read.
const machineClock = unix.CLOCK_MONOTONIC

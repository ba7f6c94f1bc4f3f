//go:build linux || darwin

package sidekeeper

import (
	"time"

	"golang.org/x/sys/unix"
)

// readClock ends the program with what it holds when there is no such clock: nothing can be said to be valid without.
func readClock(id int32) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(id, &now); err != nil {
		panic("sidekeeper: a clock that cannot be read: " + err.Error())
	}
	return time.Duration(now.Nano())
}

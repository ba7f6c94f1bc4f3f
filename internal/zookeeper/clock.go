package zookeeper

import (
	"time"

	"golang.org/x/sys/unix"
)

// An instant is a reading of CLOCK_BOOTTIME, in nanoseconds. Unlike Go's own monotonic clock, it goes on while the machine
// is suspended, as the ensemble's does.
type instant int64

func now() instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("the kernel has no CLOCK_BOOTTIME: " + err.Error())
	}
	return instant(t.Nano())
}

func (i instant) add(d time.Duration) instant { return i + instant(d) }

// since is how long it is from other to i.
func (i instant) since(other instant) time.Duration { return time.Duration(i - other) }

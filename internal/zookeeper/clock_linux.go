//go:build !sleeper

package zookeeper

import "golang.org/x/sys/unix"

func now() instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("the kernel has no CLOCK_BOOTTIME: " + err.Error())
	}
	return instant(t.Nano())
}

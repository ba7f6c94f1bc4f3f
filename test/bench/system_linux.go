package main

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes puts a sidecar into a process group of its own, so that a Ctrl-C at the terminal reaches it through its
// parent alone.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// processorTime is how long a process has run on processors, all its threads together. A process's clock has the
// number that clock_getcpuclockid computes.
func processorTime(process int) (time.Duration, error) {
	const scheduled = 2
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^process<<3|scheduled), &spent); err != nil {
		return 0, err
	}
	return time.Duration(spent.Nano()), nil
}

// yieldProcessors gives a process the lowest priority.
func yieldProcessors(process int) error {
	return syscall.Setpriority(syscall.PRIO_PROCESS, process, 19)
}

//go:build unix && !linux

package endtoend

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const machineClock = unix.CLOCK_MONOTONIC

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitStopped does not wait: a process that was sent SIGSTOP stops soon.
func awaitStopped(int) {}

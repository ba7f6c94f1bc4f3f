package endtoend

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// machineClock goes on while the machine is suspended, as validity does.
const machineClock = unix.CLOCK_BOOTTIME

// attributes puts a process into a group of its own, so that a Ctrl-C at the terminal does not reach it, and has it killed
// when the test is.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitStopped returns when a child that was sent SIGSTOP has stopped, or has ended.
func awaitStopped(process int) {
	for {
		err := unix.Waitid(unix.P_PID, process, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts a process into a group of its own, so that a Ctrl-C at the terminal does not reach it, and has
// it killed when the thread that started it ends, so that it does not outlive a program that was killed.
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

package peers

import "syscall"

// attributes has a process killed when the test is, and keeps the terminal's Ctrl-C from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

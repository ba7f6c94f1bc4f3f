package supervise

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

func foregroundGroup(terminal int) (int, error) { return unix.IoctlGetInt(terminal, unix.TIOCGPGRP) }

// takeTerminalBack makes this process group the foreground again. One in the background that does so gets SIGTTOU, which
// stops it unless it is ignored.
func takeTerminalBack(terminal int) {
	if terminal < 0 {
		return
	}
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, syscall.Getpgrp()) // it may be gone: nothing to take back
}

//go:build !windows

package supervise

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminalFile is the terminal of a process's session, whatever its input is.
const terminalFile = "/dev/tty"

func foregroundGroup(terminal int) (int, error) { return unix.IoctlGetInt(terminal, unix.TIOCGPGRP) }

// isTerminal says whether a person may read what is written.
func isTerminal(to io.Writer) bool {
	file, is := to.(*os.File)
	if !is {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// takeTerminalBack makes this process group the foreground again. One in the background that does so gets SIGTTOU, which
// stops it unless it is ignored.
func takeTerminalBack(terminal *os.File) {
	if terminal == nil {
		return
	}
	defer terminal.Close()
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, syscall.Getpgrp()) // it may be gone: nothing to take back
}

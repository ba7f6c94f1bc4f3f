package stage

import (
	"os"

	"golang.org/x/sys/unix"
)

// narrow has a pipe take as little as it can.
func narrow(to *os.File) { _, _ = unix.FcntlInt(to.Fd(), unix.F_SETPIPE_SZ, pipe) }

package caller

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// peerCredential asks the kernel for the user and the process at the other end of a Unix socket.
func peerCredential(socket *net.UnixConn) (uid int, process int32, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var credential *unix.Xucred
	var pid int
	var failures [2]error
	err = raw.Control(func(descriptor uintptr) {
		credential, failures[0] = unix.GetsockoptXucred(int(descriptor), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		pid, failures[1] = unix.GetsockoptInt(int(descriptor), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	if err := errors.Join(err, failures[0], failures[1]); err != nil {
		return 0, 0, err
	}
	return int(credential.Uid), int32(pid), nil
}

// closedByPeer takes an end of file for the peer's: macOS, where sidecars are for development, does not tell it from a
// connection that timed out.
func closedByPeer(int) bool { return true }

// finReceived is not known before it is read.
func finReceived(int) bool { return false }

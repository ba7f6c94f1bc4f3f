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
	var credential *unix.Ucred
	var failure error
	err = raw.Control(func(descriptor uintptr) {
		credential, failure = unix.GetsockoptUcred(int(descriptor), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failure); err != nil {
		return 0, 0, err
	}
	return int(credential.Uid), credential.Pid, nil
}

// closedByPeer says whether a TCP socket that reads an end of file got it from its peer.
func closedByPeer(descriptor int) bool { return finReceived(descriptor) }

// finReceived says whether a TCP socket's peer has said that it sends no more, and nothing has happened since.
func finReceived(descriptor int) bool {
	info, err := unix.GetsockoptTCPInfo(descriptor, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State == unix.BPF_TCP_CLOSE_WAIT
}

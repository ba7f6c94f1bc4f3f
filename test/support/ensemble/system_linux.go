package ensemble

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reserve binds a port without listening on it. While it is bound so, the system gives it to no one, and a server that
// asks for it by number and sets SO_REUSEADDR, as ZooKeeper does, gets it nevertheless.
func reserve() (port, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return port{}, os.NewSyscallError("socket", err)
	}
	number, err := bind(socket)
	if err != nil {
		unix.Close(socket)
		return port{}, fmt.Errorf("reserve a port: %w", err)
	}
	return port{number: number, release: func() { unix.Close(socket) }}, nil
}

func bind(socket int) (int, error) {
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	return bound.(*unix.SockaddrInet4).Port, nil
}

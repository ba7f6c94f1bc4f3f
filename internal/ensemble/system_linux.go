package ensemble

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts a server into a process group of its own, so that a Ctrl-C at the terminal does not reach it, and has
// it killed when the thread that started it ends, so that it does not outlive a test that was killed.
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

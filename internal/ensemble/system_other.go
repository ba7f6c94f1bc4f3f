//go:build unix && !linux

package ensemble

import (
	"net"
	"syscall"
)

// attributes puts a server into a process group of its own, so that a Ctrl-C at the terminal does not reach it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitStopped does not wait: a process that was sent SIGSTOP stops soon.
func awaitStopped(int) {}

// reserve finds a port that is free now; nothing keeps others from taking it.
func reserve() (port, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return port{}, err
	}
	defer listener.Close()
	return port{number: listener.Addr().(*net.TCPAddr).Port, release: func() {}}, nil
}

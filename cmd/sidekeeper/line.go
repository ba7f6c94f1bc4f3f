package main

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A line connects to the sidecar, and knows the newest connection.
type line struct {
	mu     sync.Mutex
	newest syscall.Conn
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest, _ = connection.(syscall.Conn)
	return connection, nil
}

// hold returns another descriptor of the newest connection. Until both are closed the sidecar sees no end of it, whatever
// becomes of this process.
func (l *line) hold() (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.newest == nil {
		return nil, errors.New("there is no connection to the sidecar")
	}
	raw, err := l.newest.SyscallConn()
	if err != nil {
		return nil, err
	}
	var second int
	var failed error
	err = raw.Control(func(first uintptr) { second, failed = unix.FcntlInt(first, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(second), "connection"), nil // unlike net's File, it leaves the connection as it is
}

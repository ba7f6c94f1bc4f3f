//go:build !windows

package supervise

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Dialer connects to the sidecar, and remembers the newest connection.
type Dialer struct {
	mu     sync.Mutex
	newest syscall.Conn
}

// Dial is for sidekeeper.WithDialer.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest, _ = connection.(syscall.Conn)
	return connection, nil
}

// hold returns another descriptor of the newest connection. Until both are closed the sidecar sees no end of it, whatever
// becomes of this process.
func (d *Dialer) hold() (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.newest == nil {
		return nil, errors.New("there is no connection to the sidecar")
	}
	raw, err := d.newest.SyscallConn()
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

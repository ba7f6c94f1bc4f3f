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
	child  *Child // whose guardian keeps each connection on which its claim may hang; nil before there is one
	given  syscall.Conn
}

// Dial is for sidekeeper.WithDialer. A claim that is resumed over the connection hangs on it: a guardian that cannot keep it has it
// not come about.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest, _ = connection.(syscall.Conn)
	if err := d.give(); err != nil {
		_ = connection.Close() // it has carried nothing
		return nil, err
	}
	return connection, nil
}

// giveTo has the guardian of a child keep the newest connection from now on.
func (d *Dialer) giveTo(child *Child) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.child = child
	return d.give()
}

// give gives the newest connection to the guardian, if there is one that does not have it. The lock is held.
func (d *Dialer) give() error {
	if d.child == nil || d.given == d.newest {
		return nil
	}
	connection, err := d.hold()
	if err != nil {
		return err
	}
	defer connection.Close()
	d.given = d.newest
	return d.child.keep(connection)
}

// first is what the guardian is started with.
func (d *Dialer) first() (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given = d.newest
	return d.hold()
}

// hold returns another descriptor of the newest connection. Until both are closed the sidecar sees no end of it, whatever
// becomes of this process. The lock is held.
func (d *Dialer) hold() (*os.File, error) {
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

//go:build !windows

package supervise

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Dialer connects to the sidecar, and remembers the newest connection.
type Dialer struct {
	mu       sync.Mutex
	newest   syscall.Conn
	children map[*Child]syscall.Conn // whose guardians keep each connection on which their claims may hang, and which they have got last
}

// A kept is a descriptor of a connection, for a guardian.
type kept struct {
	of   syscall.Conn
	file *os.File
}

// Dial is for sidekeeper.WithDialer. A claim that is resumed over the connection hangs on it. So a guardian that cannot keep it is ended with
// its command, and the other commands go on. If that takes too long, the connection does not come about.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest, _ = connection.(syscall.Conn)
	if err := d.giveAll(); err != nil {
		_ = connection.Close() // it has carried nothing
		return nil, err
	}
	return connection, nil
}

// giveTo has the guardian of a child keep the newest connection from now on, until the child has ended. It was started with one. Errors are
// those of the connection, not of a guardian.
func (d *Dialer) giveTo(child *Child, has syscall.Conn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.children == nil {
		d.children = map[*Child]syscall.Conn{}
	}
	d.children[child] = has
	return d.giveAll()
}

// giveAll gives the newest connection to the guardians that do not have it. The lock is held.
func (d *Dialer) giveAll() error {
	var frozen []*Child
	for child, given := range d.children {
		if child.hasExited() {
			delete(d.children, child)
		} else if given != d.newest {
			kept, err := d.give(child)
			if err != nil {
				return err
			}
			if !kept {
				child.Kill(0)
				frozen = append(frozen, child)
			}
		}
	}
	late := time.After(endingTime)
	for _, child := range frozen {
		select {
		case <-child.Exited:
			delete(d.children, child)
		case <-late:
			return errors.New("a command does not end whose guardian does not take the connection")
		}
	}
	return nil
}

// endingTime is how long a connection waits for the commands to end whose guardians do not take it.
const endingTime = 3 * outputTime

// give says whether the guardian has taken the newest connection.
func (d *Dialer) give(child *Child) (kept bool, _ error) {
	connection, err := d.hold()
	if err != nil {
		return false, err
	}
	defer connection.Close()
	if child.keep(connection) != nil {
		return false, nil
	}
	d.children[child] = d.newest
	return true, nil
}

// first is what a guardian is started with.
func (d *Dialer) first() (kept, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file, err := d.hold()
	return kept{d.newest, file}, err
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

package caller

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// lockRoot is where a sidecar keeps locks.
const lockRoot = "/sidekeeper/locks"

// zookeeperLocks are go-zookeeper's, used with all the care that it makes possible: a session for each lock, which is
// believed in for as long as the library says that it has that session.
type zookeeperLocks struct{ process *process }

// A zookeeperLock is one of them.
type zookeeperLock struct {
	session *zk.Conn
	id      int64 // of the session
	lock    *zk.Lock
	token   int64
	done    chan struct{}
	release sync.Once
}

func (l zookeeperLocks) acquire(ctx context.Context, name string, _ sidekeeper.LockOptions) (lock, error) {
	session, events, err := zk.Connect(l.process.order.Servers, l.process.order.Timeout, zk.WithLogInfo(false),
		zk.WithLogger(silence{}))
	if err != nil {
		return nil, err
	}
	unlink := context.AfterFunc(ctx, session.Close)
	path := lockRoot + "/" + strings.ReplaceAll(name, "/", "%2F")
	z := &zookeeperLock{session: session, lock: zk.NewLock(session, path, zk.WorldACL(zk.PermAll)), done: make(chan struct{})}
	err = awaitSession(ctx, events)
	if err == nil {
		z.id = session.SessionID()
		err = z.lock.Lock()
	}
	if err == nil {
		err = z.findToken(path)
	}
	if !unlink() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	return z, nil
}

func awaitSession(ctx context.Context, events <-chan zk.Event) error {
	for {
		select {
		case event, open := <-events:
			if !open {
				return zk.ErrClosing
			}
			if event.State == zk.StateHasSession {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// findToken finds the lock's node among those there are: the library does not say which one it is.
func (z *zookeeperLock) findToken(path string) error {
	children, _, err := z.session.Children(path)
	if err != nil {
		return err
	}
	for _, child := range children {
		if found, stat, err := z.session.Exists(path + "/" + child); err == nil && found && stat.EphemeralOwner == z.id {
			z.token = stat.Czxid
			return nil
		}
	}
	return errors.New("the lock has no node")
}

// Valid says what the library knows.
func (z *zookeeperLock) Valid() bool {
	select {
	case <-z.done:
		return false
	default:
		return z.session.State() == zk.StateHasSession && z.session.SessionID() == z.id
	}
}

// ValidFor does not say how long: the library knows of no time at which it ends.
func (z *zookeeperLock) ValidFor() time.Duration {
	if z.Valid() {
		return risky - 1
	}
	return 0
}

func (z *zookeeperLock) FencingToken() int64   { return z.token }
func (z *zookeeperLock) Done() <-chan struct{} { return z.done }
func (z *zookeeperLock) Err() error            { return nil }

// Release gives the lock up and ends its session.
func (z *zookeeperLock) Release(context.Context) (err error) {
	z.release.Do(func() {
		close(z.done)
		if z.session.SessionID() == z.id {
			err = z.lock.Unlock()
		}
		z.session.Close()
	})
	return err
}

// silence is a log that nobody reads.
type silence struct{}

func (silence) Printf(string, ...any) {}

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// lockRoot is where sidecars keep locks.
const lockRoot = "/sidekeeper/locks"

// strangers are children that somebody else might put into the directory of a lock. None is the place of a contender.
var strangers = []string{"junk", "README", "0000000001", "config.json", "seq-0000000000"}

// meddle does what others than sidecars may do to the nodes of locks: it puts strange children into the directory of the lock
// that everybody wants, forbids new ones there for a while, or deletes whatever directory is empty.
func meddle(ctx context.Context, s *scene) error {
	var addresses []string
	for _, server := range s.Stage.Ensemble.Servers() {
		addresses = append(addresses, server.RealAddress())
	}
	session, _, err := zk.Connect(addresses, quorumTime, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		return err
	}
	defer session.Close()
	directory := lockRoot + "/" + strings.ReplaceAll(s.hot(), "/", "%2F")
	defer s.fault("")()
	switch s.dice.IntN(3) {
	case 0:
		return s.litter(ctx, session, directory)
	case 1:
		return s.forbid(ctx, session, directory)
	default:
		return s.reap(ctx, session)
	}
}

// litter leaves strange children for a while, and takes them away again.
func (s *scene) litter(ctx context.Context, session *zk.Conn, directory string) error {
	var failed error
	for _, name := range strangers {
		failed = errors.Join(failed, s.insist(ctx, func() error {
			_, err := session.Create(directory+"/"+name, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
			return unless(err, zk.ErrNodeExists, zk.ErrNoNode)
		}))
	}
	s.pause(ctx, 2*time.Second)
	for _, name := range strangers {
		failed = errors.Join(failed, s.insist(ctx, func() error {
			return unless(session.Delete(directory+"/"+name, -1), zk.ErrNoNode)
		}))
	}
	return failed
}

// forbid lets nobody take a place for a while.
func (s *scene) forbid(ctx context.Context, session *zk.Conn, directory string) error {
	allow := func(permissions int32) error {
		return s.insist(ctx, func() error {
			_, err := session.SetACL(directory, zk.WorldACL(permissions), -1)
			return unless(err, zk.ErrNoNode) // nobody wanted the lock just then
		})
	}
	forbidden := allow(zk.PermAll &^ zk.PermCreate)
	s.pause(ctx, 1500*time.Millisecond)
	return errors.Join(forbidden, allow(zk.PermAll))
}

// reap deletes empty directories of locks again and again, as the ensemble does with containers, but without any patience.
func (s *scene) reap(ctx context.Context, session *zk.Conn) error {
	for over := time.Now().Add(2 * time.Second); time.Now().Before(over); {
		err := s.insist(ctx, func() error { return reapOnce(session) })
		if err != nil {
			return err
		}
		if !s.pause(ctx, 20*time.Millisecond) {
			return nil
		}
	}
	return nil
}

func reapOnce(session *zk.Conn) error {
	names, _, err := session.Children(lockRoot)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := session.Delete(lockRoot+"/"+name, -1)
		if unless(err, zk.ErrNotEmpty, zk.ErrNoNode) != nil {
			return fmt.Errorf("delete %s: %w", name, err)
		}
	}
	return nil
}

// insist does something that may be done twice until an answer comes: another nemesis may be about.
func (s *scene) insist(ctx context.Context, do func() error) error {
	for attempts := 50; ; attempts-- {
		err := do()
		if unless(err, zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired) != nil || err == nil || attempts == 0 {
			return err
		}
		if !s.pause(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// quiet is a log that nobody reads.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// unless is an error that is none of those expected.
func unless(err error, expected ...error) error {
	for _, each := range expected {
		if errors.Is(err, each) {
			return nil
		}
	}
	return err
}

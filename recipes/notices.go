package recipes

import (
	"context"
	"sync"
)

// A Follower is a Tree that tells a reader of many nodes, at one place, which of them may have changed. To wait for as
// many channels would take a goroutine each.
type Follower interface {
	Tree

	// Follow reads a node as Watch does. Instead of closing a channel it tells notices the path, once. It tells nothing
	// after an error.
	Follow(ctx context.Context, path string, notices *Notices) (Node, error)

	// FollowChildren lists as WatchChildren does, and tells notices the path once, also with ErrNoNode.
	FollowChildren(ctx context.Context, path string, notices *Notices) ([]string, error)
}

// Notices collects the paths of nodes that may have changed. Its methods are for any goroutine.
type Notices struct {
	mu     sync.Mutex
	paths  map[string]struct{}
	rung   chan struct{}
	closed bool
}

// NewNotices makes an empty Notices.
func NewNotices() *Notices {
	return &Notices{paths: map[string]struct{}{}, rung: make(chan struct{}, 1)}
}

// Tell adds a path. It never blocks.
func (n *Notices) Tell(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.paths[path] = struct{}{}
	select {
	case n.rung <- struct{}{}:
	default:
	}
}

// Rung has something to receive once there are paths to take.
func (n *Notices) Rung() <-chan struct{} { return n.rung }

// Take returns the paths told since the last time.
func (n *Notices) Take() map[string]struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.paths
	n.paths = map[string]struct{}{}
	select {
	case <-n.rung:
	default:
	}
	return taken
}

// Close has nothing collected any more.
func (n *Notices) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed, n.paths = true, nil
}

// Closed says whether Close was called: no reader needs to be told any more.
func (n *Notices) Closed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

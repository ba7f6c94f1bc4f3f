package zookeeper

import (
	"context"
	"slices"

	"github.com/sidekeeper/sidekeeper/recipes"
)

var _ recipes.Follower = (*Client)(nil)

// Follow reads a node; see recipes.Follower.
func (c *Client) Follow(ctx context.Context, path string, notices *recipes.Notices) (recipes.Node, error) {
	a, cancel := c.asker(ctx)
	defer cancel()
	return ask(c.reader, a, func(v *view) (recipes.Node, error) {
		w := v.watched(a.ctx, path)
		if err := a.wait(w.ready); err != nil {
			return recipes.Node{}, err
		}
		if w.err == nil {
			v.tell(w, path, notices)
		}
		return w.now(), w.err
	})
}

// FollowChildren lists a node's children.
func (c *Client) FollowChildren(ctx context.Context, path string, notices *recipes.Notices) ([]string, error) {
	a, cancel := c.asker(ctx)
	defer cancel()
	w, err := ask(c.reader, a, func(v *view) (*watched, error) {
		w, err := v.listed(a, path)
		if err == nil {
			v.tell(w, path, notices)
		}
		return w, err
	})
	if err != nil {
		return nil, err
	}
	return w.names, w.err
}

// tell has notices told when the watch fires, or at once if it has fired.
func (v *view) tell(w *watched, path string, notices *recipes.Notices) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.fired {
		notices.Tell(path)
		return
	}
	w.told = slices.DeleteFunc(w.told, func(n *recipes.Notices) bool { return n == notices || n.Closed() })
	w.told = append(w.told, notices)
}

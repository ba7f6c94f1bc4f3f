package standin

import (
	"context"
	"errors"
	"slices"

	"github.com/sidekeeper/sidekeeper/recipes"
)

var _ recipes.Follower = (*Reader)(nil)

// Follow implements recipes.Follower.
func (r *Reader) Follow(ctx context.Context, path string, notices *recipes.Notices) (recipes.Node, error) {
	node, changed, err := r.Watch(ctx, path)
	if err == nil {
		r.set(func() { r.view.subscribe(changed, path, notices) })
	}
	return node, err
}

// FollowChildren implements recipes.Follower.
func (r *Reader) FollowChildren(ctx context.Context, path string, notices *recipes.Notices) ([]string, error) {
	names, changed, err := r.WatchChildren(ctx, path)
	if err == nil || errors.Is(err, recipes.ErrNoNode) {
		r.set(func() { r.view.subscribe(changed, path, notices) })
	}
	return names, err
}

// A subscriber is told when a watch's channel is closed.
type subscriber struct {
	path    string
	notices *recipes.Notices
}

// subscribe has notices told of the path when the channel is closed, or at once if it is.
func (v *view) subscribe(changed *recipes.Signal, path string, notices *recipes.Notices) {
	if changed == nil {
		return // contact was lost while it was read
	}
	if changed.IsGiven() {
		notices.Tell(path)
		return
	}
	if v.subscribers == nil {
		v.subscribers = map[*recipes.Signal][]subscriber{}
	}
	others := slices.DeleteFunc(v.subscribers[changed], func(s subscriber) bool { return s.notices == notices || s.notices.Closed() })
	v.subscribers[changed] = append(others, subscriber{path, notices})
}

// tellAll tells those who subscribed to a channel that has been closed.
func (v *view) tellAll(changed *recipes.Signal) {
	for _, s := range v.subscribers[changed] {
		s.notices.Tell(s.path)
	}
	delete(v.subscribers, changed)
}

package zookeeper

import (
	"context"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A tree is the ensemble as the reader shows it; see recipes.Store. The Client and each Session have one. Without a session, calls
// end with ErrUnreachable when the ensemble does not answer for a third of the session timeout; with one they end with the session.
type tree struct {
	reader *reader
	owner  *Session // nil for those who own nothing
}

var (
	_ recipes.Store = (*Client)(nil)
	_ recipes.Store = (*Session)(nil)
)

func (t tree) asker(ctx context.Context) (asker, context.CancelFunc) {
	if t.owner != nil {
		return asker{ctx: ctx, stays: ctx, session: t.owner}, func() {}
	}
	waits, cancel := context.WithTimeoutCause(ctx, t.reader.client.config.SessionTimeout/3, recipes.ErrUnreachable)
	return asker{ctx: waits, stays: ctx}, cancel
}

// Children lists a node's children; see recipes.Tree for this and the others.
func (t tree) Children(ctx context.Context, path string) ([]string, error) {
	a, cancel := t.asker(ctx)
	defer cancel()
	return ask(t.reader, a, func(v *view) ([]string, error) { return v.children(a, path) })
}

// WatchChildren lists with a watch.
func (t tree) WatchChildren(ctx context.Context, path string) ([]string, *recipes.Signal, error) {
	a, cancel := t.asker(ctx)
	defer cancel()
	w, err := ask(t.reader, a, func(v *view) (*watched, error) { return v.listed(a, path) })
	if err != nil {
		return nil, nil, err
	}
	return w.names, &w.changed, w.err
}

// Get reads a node.
func (t tree) Get(ctx context.Context, path string) (recipes.Node, error) {
	a, cancel := t.asker(ctx)
	defer cancel()
	return ask(t.reader, a, func(v *view) (recipes.Node, error) { return v.get(a, path) })
}

// Watch reads a node with a watch.
func (t tree) Watch(ctx context.Context, path string) (recipes.Node, *recipes.Signal, error) {
	a, cancel := t.asker(ctx)
	defer cancel()
	w, err := ask(t.reader, a, func(v *view) (watchedNode, error) { return v.watch(a, path) })
	return w.node, w.changed, err
}

// CatchUp waits until the reader shows all that is committed now.
func (t tree) CatchUp(ctx context.Context) error {
	a, cancel := t.asker(ctx)
	defer cancel()
	_, err := ask(t.reader, a, func(v *view) (struct{}, error) { return v.catchUp(a) })
	return err
}

// An asker is who waits for the reader: a context, and the session on whose behalf it asks, if any.
type asker struct {
	ctx     context.Context //nolint:containedctx // travels no further than the call
	stays   context.Context //nolint:containedctx // ends when the caller goes that has asked with a watch
	session *Session
}

// ended is closed when the session has ended; it blocks for ever without one.
func (a asker) ended() <-chan struct{} {
	if a.session == nil {
		return nil
	}
	return a.session.over.Done()
}

// wait returns when changed is closed; otherwise the reason to wait no longer.
func (a asker) wait(changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-a.ended():
		return a.session.Err()
	case <-a.ctx.Done():
		return context.Cause(a.ctx)
	}
}

func (a asker) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-a.ended():
		return a.session.Err()
	case <-a.ctx.Done():
		return context.Cause(a.ctx)
	}
}

package zookeeper

import (
	"context"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// The Client is a recipes.Tree, and a recipes.Store, for those who own nothing: its calls end with ErrUnreachable when the
// ensemble does not answer for a third of the session timeout. A Session is one too: its calls end with the session instead.

func (c *Client) impatient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.config.SessionTimeout/3, recipes.ErrUnreachable)
}

// Children lists a node's children; see recipes.Tree for this and the others.
func (c *Client) Children(ctx context.Context, path string) ([]string, error) {
	ctx, cancel := c.impatient(ctx)
	defer cancel()
	return c.reader.children(asker{ctx: ctx}, path)
}

// WatchChildren lists with a watch.
func (c *Client) WatchChildren(ctx context.Context, path string) ([]string, <-chan struct{}, error) {
	ctx, cancel := c.impatient(ctx)
	defer cancel()
	return c.reader.watchChildren(asker{ctx: ctx}, path)
}

// Get reads a node.
func (c *Client) Get(ctx context.Context, path string) (recipes.Node, error) {
	ctx, cancel := c.impatient(ctx)
	defer cancel()
	return c.reader.get(asker{ctx: ctx}, path)
}

// Watch reads a node with a watch.
func (c *Client) Watch(ctx context.Context, path string) (recipes.Node, <-chan struct{}, error) {
	ctx, cancel := c.impatient(ctx)
	defer cancel()
	return c.reader.watch(asker{ctx: ctx}, path)
}

// CatchUp waits until the reader shows all that is committed now.
func (c *Client) CatchUp(ctx context.Context) error {
	ctx, cancel := c.impatient(ctx)
	defer cancel()
	return c.reader.catchUp(asker{ctx: ctx})
}

// Set replaces a node's data.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) error {
	ctx, cancel := c.impatient(ctx)
	defer cancel()
	return c.reader.set(asker{ctx: ctx}, path, data, version)
}

// Remove deletes a node.
func (c *Client) Remove(ctx context.Context, path string) error {
	ctx, cancel := c.impatient(ctx)
	defer cancel()
	return c.reader.remove(asker{ctx: ctx}, path)
}

// Children lists a node's children through the reader, as the others do.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	return s.client.reader.children(s.asker(ctx), path)
}

// WatchChildren lists with a watch.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, <-chan struct{}, error) {
	return s.client.reader.watchChildren(s.asker(ctx), path)
}

// Get reads a node.
func (s *Session) Get(ctx context.Context, path string) (recipes.Node, error) {
	return s.client.reader.get(s.asker(ctx), path)
}

// Watch reads a node with a watch.
func (s *Session) Watch(ctx context.Context, path string) (recipes.Node, <-chan struct{}, error) {
	return s.client.reader.watch(s.asker(ctx), path)
}

// CatchUp waits until the reader shows all that is committed now.
func (s *Session) CatchUp(ctx context.Context) error {
	return s.client.reader.catchUp(s.asker(ctx))
}

// Set replaces a node's data.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) error {
	return s.client.reader.set(s.asker(ctx), path, data, version)
}

// Remove deletes a node.
func (s *Session) Remove(ctx context.Context, path string) error {
	return s.client.reader.remove(s.asker(ctx), path)
}

func (s *Session) asker(ctx context.Context) asker { return asker{ctx: ctx, session: s} }

// An asker is who waits for the reader: a context, and the session on whose behalf it asks, if any.
type asker struct {
	ctx     context.Context //nolint:containedctx // travels no further than the call
	session *Session
}

// ended is closed when the session has ended; it blocks for ever without one.
func (a asker) ended() <-chan struct{} {
	if a.session == nil {
		return nil
	}
	return a.session.done
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

package standin

import (
	"context"
	"errors"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A Reader is the ensemble as one sidecar's shared reader sees it, without a connection.
type Reader struct {
	*line
	view view
}

var _ recipes.Store = (*Reader)(nil)

// NewReader makes a reader. Nothing need be done to end it.
func (e *Ensemble) NewReader() *Reader {
	r := &Reader{line: newLine(e.mu)}
	r.view = view{
		ensemble: e, line: r.line,
		nodes: map[string]*recipes.Signal{}, lists: map[string]*recipes.Signal{}, deleted: map[string]bool{},
		stays: map[*recipes.Signal]int{},
	}
	return r
}

// Suspend takes contact with the ensemble away: calls wait, watches are silent.
func (r *Reader) Suspend() { r.set(func() { r.suspend(true) }) }

// Resume gives contact back.
func (r *Reader) Resume() { r.set(r.resume) }

func (r *Reader) resume() {
	if r.suspend(false) {
		r.view.deliver()
	}
}

// Reachable says whether there is contact, with a channel that is closed when that changes.
func (r *Reader) Reachable() (bool, <-chan struct{}) {
	suspended, changed := r.state()
	return !suspended, changed
}

// Lag stops the reader from seeing changes, until KeepUp and save for what CatchUp brings in.
func (r *Reader) Lag() { r.set(r.view.freeze) }

// KeepUp ends Lag: all that had been held back is seen at once.
func (r *Reader) KeepUp() { r.set(r.view.thaw) }

// Children implements recipes.Tree.
func (r *Reader) Children(ctx context.Context, path string) ([]string, error) {
	return r.children(ctx, r.line, over{}, path)
}

// WatchChildren implements recipes.Tree.
func (r *Reader) WatchChildren(ctx context.Context, path string) ([]string, *recipes.Signal, error) {
	return r.watchChildren(ctx, r.line, over{}, path)
}

// Get implements recipes.Tree.
func (r *Reader) Get(ctx context.Context, path string) (recipes.Node, error) {
	return r.get(ctx, r.line, over{}, path)
}

// Watch implements recipes.Tree.
func (r *Reader) Watch(ctx context.Context, path string) (recipes.Node, *recipes.Signal, error) {
	return r.watch(ctx, r.line, over{}, path)
}

// CatchUp implements recipes.Tree.
func (r *Reader) CatchUp(ctx context.Context) error { return r.catchUp(ctx, r.line, over{}) }

func (r *Reader) children(ctx context.Context, l *line, o over, path string) (names []string, err error) {
	err = l.call(ctx, o, Operation{"Children", path}, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		names, err = r.view.names(path)
		return err
	})
	return names, err
}

func (r *Reader) watchChildren(
	ctx context.Context, l *line, o over, path string,
) (names []string, changed *recipes.Signal, err error) {
	err = l.call(ctx, o, Operation{"WatchChildren", path}, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if names, err = r.view.names(path); err == nil {
			changed = r.view.watchList(path)
		} else if errors.Is(err, recipes.ErrNoNode) {
			changed = r.view.watchNode(path)
			r.keepFor(ctx, path)
		}
		return err
	})
	return names, changed, err
}

// keepFor has the watch of a node that is missing last until the last of those who wait for it have gone, as the sidecar's reader does.
func (r *Reader) keepFor(ctx context.Context, path string) {
	waiting := r.view.nodes[path]
	r.view.stays[waiting]++
	context.AfterFunc(ctx, func() {
		r.set(func() {
			if r.view.stays[waiting]--; r.view.stays[waiting] > 0 {
				return
			}
			delete(r.view.stays, waiting)
			if _, missing := r.view.tree().Find(path); missing != nil && r.view.nodes[path] == waiting {
				r.view.trip(r.view.nodes, false, path)
			}
		})
	})
}

func (r *Reader) get(ctx context.Context, l *line, o over, path string) (n recipes.Node, err error) {
	err = l.call(ctx, o, Operation{"Get", path}, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		n, err = r.view.read(path)
		return err
	})
	return n, err
}

func (r *Reader) watch(
	ctx context.Context, l *line, o over, path string,
) (n recipes.Node, changed *recipes.Signal, err error) {
	err = l.call(ctx, o, Operation{"Watch", path}, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n, err = r.view.read(path); err != nil {
			return err
		}
		if r.view.nodes[path] != nil {
			l.uncount("Watch")
		}
		changed = r.view.watchNode(path)
		return nil
	})
	if err != nil {
		return recipes.Node{}, nil, err
	}
	return n, changed, nil
}

func (r *Reader) catchUp(ctx context.Context, l *line, o over) error {
	return l.call(ctx, o, Operation{Name: "CatchUp"}, func() error {
		r.set(r.view.catchUp)
		return nil
	})
}

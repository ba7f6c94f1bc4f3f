package zookeeper

import (
	"context"
	"errors"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// What is watched and there is bounded by what is there, and its watches serve whoever asks next. A watch of what is not there serves those
// alone who wait for it, and anybody may wait for any name. So it is removed here and at the server when the last of them has gone.

// keepFor keeps the watch of a list for a caller that may wait for it until ctx ends.
func (v *view) keepFor(ctx context.Context, path string, w *watched) {
	if w.settled() != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.fired || w.stay[ctx] != nil {
		return
	}
	if w.stay == nil {
		w.stay = make(map[context.Context]func() bool)
	}
	w.stay[ctx] = context.AfterFunc(ctx, func() { v.forsake(ctx, path, w) })
}

// forsake takes in that a caller has gone that waited for a node, and removes the watch with the last of them. Who relies on it nevertheless is
// told that it has fired.
func (v *view) forsake(ctx context.Context, path string, w *watched) {
	<-w.ready
	if !v.beginRemoval(ctx, path, w) {
		return
	}
	if v.session.startWork() {
		v.session.removeWatch(path)
		v.session.work.Done()
	}
	v.endRemoval(path)
}

// beginRemoval says whether the watch is to be removed at the server, and drops it then. The server does not tell one watch of a path from
// another: one that is being armed on the node is waited for.
func (v *view) beginRemoval(ctx context.Context, path string, w *watched) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(w.stay, ctx)
	for node := v.nodes[path]; node != nil && node.settled() == nil; node = v.nodes[path] {
		v.mu.Unlock()
		<-node.ready
		v.mu.Lock()
	}
	if w.fired || len(w.stay) > 0 || !errors.Is(w.err, recipes.ErrNoNode) || v.nodes[path] != nil {
		return false
	}
	drop(v.lists, path)
	v.removals[path] = make(chan struct{})
	return true
}

func (v *view) endRemoval(path string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.removals[path])
	delete(v.removals, path)
}

// awaitRemoval returns when no watch of the path is being removed.
func (v *view) awaitRemoval(path string) {
	v.mu.Lock()
	removal := v.removals[path]
	v.mu.Unlock()
	if removal != nil {
		<-removal
	}
}

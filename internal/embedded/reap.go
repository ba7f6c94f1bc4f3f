package embedded

import "time"

// scheduleReaping sets the alarm if there is anything that may have to be reaped. The ensemble is locked.
func (e *Ensemble) scheduleReaping() {
	if len(e.tree.idle)+len(e.tree.ttls) == 0 || e.closed {
		return
	}
	e.reaping.set(time.Now().Add(e.options.ReapInterval), e.Reap)
}

// Reap deletes the containers that have lost their last child and the TTL nodes that are overdue. The ensemble does
// so itself once in Options.ReapInterval.
func (e *Ensemble) Reap() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reaping.stop()
	for path := range e.tree.idle {
		e.reap(path, e.tree.nodes[path].stat.created != 0)
	}
	now := time.Now()
	for path := range e.tree.ttls {
		stat := e.tree.nodes[path].stat
		e.reap(path, now.Sub(time.UnixMilli(stat.mtime)) > timeToLive(stat.owner))
	}
	e.scheduleReaping()
}

// reap deletes a node if it is due and has no children.
func (e *Ensemble) reap(path string, due bool) {
	n := e.tree.nodes[path]
	if !due || len(n.children) > 0 {
		return
	}
	_ = e.write(caller{}, func(t *transaction) error {
		t.remove(path, n)
		return nil
	})
}

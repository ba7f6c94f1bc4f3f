package embedded

import "github.com/sidekeeper/sidekeeper/recipes"

// A view is what a Reader sees: the tree, or the tree as it was when the reader began to lag, and its watches. All its
// methods want the ensemble locked.
type view struct {
	ensemble *Ensemble
	line     *line
	frozen   *tree // nil while the reader keeps up
	zxid     int64 // of frozen
	held     []event
	nodes    map[string]chan struct{} // watches of nodes
	lists    map[string]chan struct{} // watches of lists of children

	subscribers map[<-chan struct{}][]subscriber // by the channel of a watch
}

func (v *view) tree() *tree {
	if v.frozen != nil {
		return v.frozen
	}
	return v.ensemble.tree
}

func (v *view) read(path string) (recipes.Node, error) {
	if _, err := v.readable(path); err != nil {
		return recipes.Node{}, err
	}
	return v.tree().read(path)
}

func (v *view) names(path string) ([]string, error) {
	n, err := v.readable(path)
	if err != nil {
		return nil, err
	}
	return n.names(), nil
}

// readable finds a node that everybody may read.
func (v *view) readable(path string) (*node, error) {
	n, err := v.tree().find(path)
	if err != nil {
		return nil, err
	}
	return n, permitted(n.acl, permRead, nil)
}

// freeze begins to lag.
func (v *view) freeze() {
	v.frozen, v.zxid = v.ensemble.tree.clone(), v.ensemble.zxid
}

// thaw ends lagging.
func (v *view) thaw() {
	v.frozen = nil
	v.deliver()
}

// catchUp sees all there is now, and goes on lagging if it did.
func (v *view) catchUp() {
	if v.frozen == nil {
		return
	}
	v.freeze()
	v.flush()
}

// watchNode gives the channel that is closed when the node changes, goes or comes.
func (v *view) watchNode(path string) <-chan struct{} {
	if v.nodes[path] == nil {
		v.nodes[path] = make(chan struct{})
		v.ensemble.nodeWatches.add(path, v, watchOnce)
		v.missed(path, eventDataChanged, func(n *node) int64 { return n.stat.mzxid })
	}
	return v.nodes[path]
}

// watchList gives the channel that is closed when the node's list of children changes or the node goes.
func (v *view) watchList(path string) <-chan struct{} {
	if v.lists[path] == nil {
		v.lists[path] = make(chan struct{})
		v.ensemble.childWatches.add(path, v, watchOnce)
		v.missed(path, eventChildrenChanged, func(n *node) int64 { return n.stat.pzxid })
	}
	return v.lists[path]
}

// missed holds an event for a watch that was set on an old state and whose change has happened since.
func (v *view) missed(path string, kind eventType, changed func(*node) int64) {
	if v.frozen == nil {
		return
	}
	_, missing := v.frozen.find(path)
	now, gone := v.ensemble.tree.find(path)
	switch {
	case missing == nil && gone != nil:
		v.held = append(v.held, event{kind: eventDeleted, path: path})
	case gone == nil && (missing != nil || changed(now) > v.zxid):
		v.held = append(v.held, event{kind: kind, path: path})
	}
}

// notify implements watcher.
func (v *view) notify(happened event) {
	v.held = append(v.held, happened)
	v.deliver()
}

// deliver lets watches fire, unless the reader lags or has no contact.
func (v *view) deliver() {
	if v.frozen == nil && !v.line.suspended {
		v.flush()
	}
}

func (v *view) flush() {
	held := v.held
	v.held = nil
	for _, happened := range held {
		if happened.kind != eventChildrenChanged {
			v.trip(v.nodes, v.ensemble.nodeWatches, happened.path)
		}
		if happened.kind == eventDeleted || happened.kind == eventChildrenChanged {
			v.trip(v.lists, v.ensemble.childWatches, happened.path)
		}
	}
}

// trip closes the channel of a watch that has fired.
func (v *view) trip(channels map[string]chan struct{}, table *watchTable, path string) {
	if channels[path] != nil {
		close(channels[path])
		v.tellAll(channels[path])
		delete(channels, path)
		table.remove(path, v, watchOnce)
	}
}

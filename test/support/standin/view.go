package standin

import (
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A view is what a Reader sees: the tree, or the tree as it was when the reader began to lag, and its watches. All its
// methods want the ensemble locked.
type view struct {
	ensemble *Ensemble
	line     *line
	frozen   *embedded.Tree // nil while the reader keeps up
	held     []event
	nodes    map[string]*recipes.Signal // watches of nodes
	lists    map[string]*recipes.Signal // watches of lists of children
	deleted  map[string]bool            // watched nodes that were seen deleted
	stays    map[*recipes.Signal]int    // how many wait for a node that is missing

	subscribers map[*recipes.Signal][]subscriber // by the channel of a watch
}

// An event has to be told to the watches of a node, of its list of children, or of both.
type event struct {
	path       string
	node, list bool
}

func (v *view) tree() *embedded.Tree {
	if v.frozen != nil {
		return v.frozen
	}
	return v.ensemble.Tree()
}

func (v *view) read(path string) (recipes.Node, error) {
	n, err := v.tree().Find(path)
	if err == nil {
		err = n.Readable()
	}
	if err != nil {
		return recipes.Node{}, err
	}
	return v.tree().Read(path)
}

func (v *view) names(path string) ([]string, error) {
	n, err := v.tree().Find(path)
	if err == nil {
		err = n.Readable()
	}
	if err != nil {
		return nil, err
	}
	return n.Names(), nil
}

// freeze begins to lag.
func (v *view) freeze() {
	v.frozen = v.ensemble.Tree().Clone()
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
func (v *view) watchNode(path string) *recipes.Signal {
	if v.nodes[path] == nil {
		v.nodes[path] = &recipes.Signal{}
		v.ensemble.Watch(path, false, v)
		v.missed(event{path: path, node: true}, func(stat embedded.Stat) int64 { return stat.Mzxid })
	}
	return v.nodes[path]
}

// watchList gives the channel that is closed when the node's list of children changes or the node goes.
func (v *view) watchList(path string) *recipes.Signal {
	if v.lists[path] == nil {
		v.lists[path] = &recipes.Signal{}
		v.ensemble.Watch(path, true, v)
		v.missed(event{path: path, list: true}, func(stat embedded.Stat) int64 { return stat.Pzxid })
	}
	return v.lists[path]
}

// missed holds an event for a watch that was set on an old state and whose change has happened since.
func (v *view) missed(happened event, changed func(embedded.Stat) int64) {
	if v.frozen == nil {
		return
	}
	before, missing := v.frozen.Find(happened.path)
	now, gone := v.ensemble.Tree().Find(happened.path)
	switch {
	case missing == nil && gone != nil:
		v.held = append(v.held, event{path: happened.path, node: true, list: true})
	case gone == nil && (missing != nil || changed(now.Describe()) != changed(before.Describe())):
		v.held = append(v.held, happened)
	}
}

// Notify is called with the ensemble locked.
func (v *view) Notify(happened embedded.Event) {
	path, node, list := happened.Touches()
	v.held = append(v.held, event{path, node, list})
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
		if happened.node {
			if _, err := v.tree().Find(happened.path); err != nil && v.nodes[happened.path] != nil {
				v.deleted[happened.path] = true
			}
			v.trip(v.nodes, false, happened.path)
		}
		if happened.list {
			v.trip(v.lists, true, happened.path)
		}
	}
}

// trip closes the channel of a watch that has fired.
func (v *view) trip(channels map[string]*recipes.Signal, list bool, path string) {
	if channels[path] != nil {
		channels[path].Give()
		v.tellAll(channels[path])
		delete(channels, path)
		v.ensemble.Unwatch(path, list, v)
	}
}

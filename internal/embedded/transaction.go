package embedded

import (
	"slices"
	"time"
)

// A caller is on whose behalf an operation is done.
type caller struct {
	session    int64
	identities []Identity
}

// A transaction is one zxid's worth of changes: all of them, or none.
type transaction struct {
	ensemble *Ensemble
	tree     *tree
	caller   caller
	zxid     int64
	now      int64 // milliseconds since 1970
	undo     []func()
	events   []event

	ended      bool // it is the end of the caller's session
	made, gone []Owned
	set        []string
}

// write runs one transaction. A refused one uses its zxid up too, as in ZooKeeper. The ensemble is locked.
func (e *Ensemble) write(by caller, change func(*transaction) error) error {
	e.zxid++
	t := &transaction{
		ensemble: e, tree: e.tree, caller: by, zxid: e.zxid, now: time.Now().UnixMilli(),
	}
	if err := change(t); err != nil {
		t.rollback()
		return err
	}
	e.commits(Change{Zxid: t.zxid, Session: by.session, Ended: t.ended, Made: t.made, Gone: t.gone, Set: t.set})
	for _, event := range t.events {
		e.fire(event)
	}
	e.scheduleReaping()
	return nil
}

func (t *transaction) rollback() {
	for _, undo := range slices.Backward(t.undo) {
		undo()
	}
}

// keep remembers a node's state, to be put back if the transaction fails.
func (t *transaction) keep(n *node) {
	data, acl, stat := n.data, n.acl, n.stat
	t.undo = append(t.undo, func() { n.data, n.acl, n.stat = data, acl, stat })
}

// insert puts a new node in its place, counts it at its parent and notes the events.
func (t *transaction) insert(path string, parent, n *node) {
	t.keep(parent)
	t.tree.attach(path, n)
	t.made = append(t.made, Owned{path, n.stat.owner})
	t.undo = append(t.undo, func() { t.tree.detach(path) })
	t.count(parent)
	parentPath, _ := splitPath(path)
	t.note(eventCreated, path, n.acl)
	t.note(eventChildrenChanged, watched(parentPath), parent.acl)
}

// count moves a parent's counter on. In ZooKeeper a counter that would wrap stays at its end when no other create is
// under way (it only takes larger numbers), and wraps for creates that overtake each other; Options.StuckCounters
// chooses.
func (t *transaction) count(parent *node) {
	next := parent.stat.created + 1
	if next < parent.stat.created && t.ensemble.options.StuckCounters {
		return
	}
	parent.stat.created = next
	parent.stat.pzxid = t.zxid
}

// remove takes a node away and notes the events.
func (t *transaction) remove(path string, n *node) {
	parentPath, _ := splitPath(path)
	parent := t.tree.nodes[parentPath]
	t.keep(parent)
	t.tree.detach(path)
	t.gone = append(t.gone, Owned{path, n.stat.owner})
	t.undo = append(t.undo, func() { t.tree.attach(path, n) })
	parent.stat.pzxid = t.zxid
	t.note(eventDeleted, path, n.acl)
	t.note(eventChildrenChanged, watched(parentPath), parent.acl)
}

func (t *transaction) note(kind eventType, path string, acl []ACL) {
	t.events = append(t.events, event{kind: kind, path: path, zxid: t.zxid, acl: acl})
}

// fire tells those who watch for an event. The ensemble is locked.
func (e *Ensemble) fire(happened event) {
	switch happened.kind {
	case eventChildrenChanged:
		e.childWatches.fire(happened, nil)
	case eventDeleted:
		told := e.nodeWatches.fire(happened, nil)
		e.childWatches.fire(happened, told)
		if e.deleted != nil {
			e.deleted(happened.path)
		}
	default:
		e.nodeWatches.fire(happened, nil)
	}
}

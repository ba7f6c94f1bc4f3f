package embedded

import (
	"bytes"
	"sync"
	"time"
)

// What follows lets a client of the same process in that has no connection: what stands in for the session layer in tests. All but Mutex
// wants the mutex held.

// Mutex guards all state of the ensemble.
func (e *Ensemble) Mutex() *sync.Mutex { return &e.mu }

// The parts of an ensemble that such a client names.
type (
	Tree        = tree
	Transaction = transaction
	Event       = event
)

// A localHolder is who has a session without a connection.
type localHolder struct{ end func(cause error) }

func (l *localHolder) ended(cause error) { l.end(cause) }

// StartSession opens a session that does not expire by itself; end is told why it has ended.
func (e *Ensemble) StartSession(timeout time.Duration, end func(cause error)) (session int64, negotiated time.Duration) {
	s := e.openSession(timeout, &localHolder{end})
	return s.id, s.timeout
}

// EndSession closes a session.
func (e *Ensemble) EndSession(session int64) { e.endSession(e.sessions[session], causeClosed) }

// Unheard has the time of a session run out from now on, or no longer.
func (e *Ensemble) Unheard(session int64, unheard bool) {
	if unheard {
		e.touch(e.sessions[session])
	} else {
		e.exempt(e.sessions[session])
	}
}

// Alive says whether a session is open.
func (e *Ensemble) Alive(session int64) bool {
	_, alive := e.sessions[session]
	return alive
}

// OwnedBy lists a session's nodes.
func (e *Ensemble) OwnedBy(session int64) []string { return e.ephemeralsOf(session) }

// Tree is all nodes as they are now.
func (e *Ensemble) Tree() *Tree { return e.tree }

// Write runs one transaction on behalf of a session, or of nobody if that is 0.
func (e *Ensemble) Write(session int64, change func(*Transaction) error) error {
	return e.write(caller{session: session}, change)
}

// Make makes a node that is open to everybody, and returns its path.
func (t *transaction) Make(path string, data []byte, mode Mode) (string, *node, error) {
	return t.create(creation{path: path, data: bytes.Clone(data), acl: open, mode: mode, ttl: -1, kind: mode.kind()})
}

// OnDelete has told called after each transaction that has deleted a node.
func (e *Ensemble) OnDelete(told func(path string)) { e.deleted = told }

// Watch has w told once of the next event of a node, or of its list of children.
func (e *Ensemble) Watch(path string, list bool, w watcher) { e.watches(list).add(path, w, watchOnce) }

// Unwatch takes such a watch away.
func (e *Ensemble) Unwatch(path string, list bool, w watcher) {
	e.watches(list).remove(path, w, watchOnce)
}

func (e *Ensemble) watches(list bool) *watchTable {
	if list {
		return e.childWatches
	}
	return e.nodeWatches
}

// Touches tells whether watches of the node at path fire, and those of its list of children.
func (e event) Touches() (path string, node, list bool) {
	return e.path, e.kind != eventChildrenChanged, e.kind == eventDeleted || e.kind == eventChildrenChanged
}

// Readable says whether everybody may read the node.
func (n *node) Readable() error { return permitted(n.acl, permRead, nil) }

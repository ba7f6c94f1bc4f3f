package embedded

import "strings"

// An eventType tells what happened to a watched node; the numbers are those of the wire protocol.
type eventType int32

const (
	eventCreated         eventType = 1
	eventDeleted         eventType = 2
	eventDataChanged     eventType = 3
	eventChildrenChanged eventType = 4
)

// An event is one change that watches may be waiting for.
type event struct {
	kind eventType
	path string
	zxid int64 // −1 if a watch fired because it was set too late
	acl  []ACL // of the node: who may not read it does not hear of it
}

// A watcher is told of events. Notify is called while the ensemble is locked: it must neither block nor call back.
type watcher interface {
	Notify(happened event)
}

// A watchMode tells how long a watch stays and what it covers. One watcher may have several on one path.
type watchMode uint8

const (
	watchOnce       watchMode = 1 << iota
	watchPersistent           // stays; the node and its list of children
	watchRecursive            // stays; the node and all below it
)

// A watchTable holds the watches of one sort: those of nodes, or those of lists of children.
type watchTable struct {
	byPath    map[string]map[watcher]watchMode
	byWatcher map[watcher]map[string]struct{}
	recursive int // recursive watches; while there are none, parents need not be looked at
}

func newWatchTable() *watchTable {
	return &watchTable{
		byPath:    map[string]map[watcher]watchMode{},
		byWatcher: map[watcher]map[string]struct{}{},
	}
}

// add sets a watch.
func (t *watchTable) add(path string, w watcher, mode watchMode) {
	if t.byPath[path] == nil {
		t.byPath[path] = map[watcher]watchMode{}
	}
	if t.byWatcher[w] == nil {
		t.byWatcher[w] = map[string]struct{}{}
	}
	if mode == watchRecursive && t.byPath[path][w]&watchRecursive == 0 {
		t.recursive++
	}
	t.byPath[path][w] |= mode
	t.byWatcher[w][path] = struct{}{}
}

// holds says whether the watcher has a watch of one of these modes there.
func (t *watchTable) holds(path string, w watcher, modes watchMode) bool {
	return t.byPath[path][w]&modes != 0
}

// remove takes watches of these modes away and says whether there were any.
func (t *watchTable) remove(path string, w watcher, modes watchMode) bool {
	had := t.byPath[path][w]
	if had&modes == 0 {
		return false
	}
	if had&modes&watchRecursive != 0 {
		t.recursive--
	}
	if left := had &^ modes; left != 0 {
		t.byPath[path][w] = left
		return true
	}
	delete(t.byPath[path], w)
	if len(t.byPath[path]) == 0 {
		delete(t.byPath, path)
	}
	delete(t.byWatcher[w], path)
	if len(t.byWatcher[w]) == 0 {
		delete(t.byWatcher, w)
	}
	return true
}

// forget takes all watches of a watcher away.
func (t *watchTable) forget(w watcher) {
	for path := range t.byWatcher[w] {
		t.remove(path, w, watchOnce|watchPersistent|watchRecursive)
	}
}

// count is how many watches there are, one per watcher and path.
func (t *watchTable) count() int {
	total := 0
	for _, paths := range t.byWatcher {
		total += len(paths)
	}
	return total
}

// fire tells the watchers of a path and, of those above it, the recursive ones. It returns whom it told; those in
// told already are left out.
func (t *watchTable) fire(e event, told map[watcher]bool) map[watcher]bool {
	hit := map[watcher]bool{}
	for w := range t.byPath[e.path] {
		hit[w] = true
	}
	for w := range hit {
		t.remove(e.path, w, watchOnce)
	}
	if t.recursive > 0 {
		t.collectAbove(e.path, hit)
	}
	for w := range hit {
		if !told[w] {
			w.Notify(e)
		}
	}
	return hit
}

// collectAbove adds the recursive watchers of all nodes above path.
func (t *watchTable) collectAbove(path string, hit map[watcher]bool) {
	for path != "/" && path != "" {
		path = watched(path[:strings.LastIndexByte(path, '/')])
		for w, mode := range t.byPath[path] {
			if mode&watchRecursive != 0 {
				hit[w] = true
			}
		}
	}
}

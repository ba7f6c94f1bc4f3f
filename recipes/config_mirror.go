package recipes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Mirror shows keys as they change: some keys, or all at and below one. It is filled and kept up by Look, which is for one
// goroutine; what it shows is for any.
//
// There are no watches that stay, so each node has two that fire once, of its data and of its list, shared by all Mirrors of a
// Follower. A Look reads again only what has fired: one change of a value is one notice and one request, however many
// keys there are.
type Mirror struct {
	config Config
	tree   Follower
	sought Sought

	notices *Notices
	unread  map[string]struct{}            // keys that may have changed
	nodes   map[string]map[string]struct{} // followed, by key, with the keys of what lies in them

	mu      sync.Mutex
	entries map[string]*Entry
	sorted  []*Entry // nil if it must be made anew
	last    *News
}

// Sought is what a Mirror shows.
type Sought struct {
	Keys  []string               // exactly these; what lies below them only with Below
	Below bool                   // then one key, which may be empty for all
	IsKey func(text string) bool // as in Page
	Count func(nodes int) error  // told how many nodes are followed; for more, an error keeps them from being
}

// News is one change of a Mirror. They are a list that begins where its slowest reader goes on, and what all readers have read
// is forgotten.
type News struct {
	Key           string
	Before, After *Entry // nil without a key

	mirror *Mirror
	next   *News
}

// Next is the change after this one; nil if there is none yet.
func (n *News) Next() *News {
	n.mirror.mu.Lock()
	defer n.mirror.mu.Unlock()
	return n.next
}

// NewMirror makes a Mirror that shows nothing yet. It must be closed.
func (c Config) NewMirror(tree Follower, sought Sought) *Mirror {
	m := &Mirror{
		config: c, tree: tree, sought: sought,
		notices: NewNotices(), unread: map[string]struct{}{}, nodes: map[string]map[string]struct{}{},
		entries: map[string]*Entry{},
	}
	m.last = &News{mirror: m}
	for _, key := range sought.Keys {
		m.unread[key] = struct{}{}
	}
	return m
}

// State is all that is shown, in the order of CompareKeys, and where the news about it begin. It must not be modified.
func (m *Mirror) State() ([]*Entry, *News) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sorted == nil {
		m.sorted = slices.AppendSeq(make([]*Entry, 0, len(m.entries)), maps.Values(m.entries))
		slices.SortFunc(m.sorted, func(a, b *Entry) int { return CompareKeys(a.Key, b.Key) })
	}
	return m.sorted, m.last
}

// Close ends the following. The caller must not Look any more.
func (m *Mirror) Close() { m.notices.Close() }

// Look reads what may have changed since the last Look, and returns what to wait for before the next. After an error, the
// next Look goes on with what is left.
func (m *Mirror) Look(ctx context.Context) (Changes, error) {
	for path := range m.notices.Take() {
		key := strings.TrimPrefix(strings.TrimPrefix(path, m.config.Root), "/")
		if _, followed := m.nodes[key]; followed {
			m.unread[key] = struct{}{}
		}
	}
	for len(m.unread) > 0 {
		keys := slices.Collect(maps.Keys(m.unread))
		if err := m.follow(keys); err != nil {
			return nil, err
		}
		read := make([]reflection, len(keys))
		err := EachOf(len(keys), func(i int) (err error) {
			read[i], err = m.reflect(ctx, keys[i])
			return err
		})
		m.applyAll(keys, read)
		if err != nil {
			return nil, err
		}
	}
	return Changes{m.notices.Rung()}, m.sought.Count(len(m.nodes))
}

// follow counts keys that are not followed yet.
func (m *Mirror) follow(keys []string) error {
	var added []string
	for _, key := range keys {
		if _, followed := m.nodes[key]; !followed {
			added = append(added, key)
		}
	}
	if err := m.sought.Count(len(m.nodes) + len(added)); err != nil {
		return err
	}
	for _, key := range added {
		m.nodes[key] = nil
	}
	return nil
}

// A reflection is what was read of one key.
type reflection struct {
	nodeState

	names []string // of what lies in it
	done  bool
}

// reflect reads a node with its watches. That of a missing node is armed if no other watch would tell that it was made.
func (m *Mirror) reflect(ctx context.Context, key string) (reflection, error) {
	path := m.config.path(key)
	for {
		node, err := m.tree.Follow(ctx, path, m.notices)
		missing := errors.Is(err, ErrNoNode)
		if err != nil && !missing {
			return reflection{}, err
		}
		read := reflection{nodeState: nodeState{node, !missing}, done: true}
		if m.sought.Below && !missing || missing && m.isSought(key) {
			read.names, err = m.tree.FollowChildren(ctx, path, m.notices)
		}
		switch gone := errors.Is(err, ErrNoNode); {
		case err != nil && !gone:
			return reflection{}, err
		case missing == gone: // otherwise it came or went in between
			return read, nil
		}
	}
}

// applyAll takes over what was read. What is missing is forgotten first: if what it lies in names it nevertheless, since it was
// made anew, it is followed anew.
func (m *Mirror) applyAll(keys []string, read []reflection) {
	for _, there := range []bool{false, true} {
		for i, key := range keys {
			if read[i].done && read[i].there == there {
				delete(m.unread, key)
				m.apply(key, read[i])
			}
		}
	}
}

// isSought says whether a key is looked for whatever lies above it.
func (m *Mirror) isSought(key string) bool { return slices.Contains(m.sought.Keys, key) }

// apply takes over what was read of a key.
func (m *Mirror) apply(key string, read reflection) {
	if _, followed := m.nodes[key]; !followed {
		return // what it lies in was read without it
	}
	if !read.there && !m.isSought(key) {
		m.forget(key)
		return
	}
	var entry *Entry
	if read.isKey() {
		entry = new(entryOf(key, read.node))
	}
	m.show(key, entry)
	children := m.childrenOf(key, read.names)
	for child := range m.nodes[key] {
		if _, still := children[child]; !still {
			m.forget(child)
		}
	}
	for child := range children {
		if _, before := m.nodes[child]; !before {
			m.unread[child] = struct{}{}
		}
	}
	m.nodes[key] = children
}

// childrenOf are the keys of what lies in a node.
func (m *Mirror) childrenOf(key string, names []string) map[string]struct{} {
	if len(names) == 0 {
		return nil
	}
	children := make(map[string]struct{}, len(names))
	for _, name := range names {
		if child := strings.TrimPrefix(key+"/"+name, "/"); m.sought.IsKey(child) {
			children[child] = struct{}{}
		}
	}
	return children
}

// forget takes a key that has gone off the mirror, with all below it.
func (m *Mirror) forget(key string) {
	for child := range m.nodes[key] {
		m.forget(child)
	}
	m.show(key, nil)
	delete(m.unread, key)
	delete(m.nodes, key)
}

// show has a key shown, or none, and adds the news.
func (m *Mirror) show(key string, entry *Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.entries[key]
	if before == nil && entry == nil || before != nil && entry != nil && before.Revision == entry.Revision {
		return
	}
	m.sorted = nil
	if entry == nil {
		delete(m.entries, key)
	} else {
		m.entries[key] = entry
	}
	news := &News{Key: key, Before: before, After: entry, mirror: m}
	m.last.next = news
	m.last = news
}

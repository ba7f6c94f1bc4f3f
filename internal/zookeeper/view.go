package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A watched is what one armed watch covers. It is shared by all who look at the same node while nothing has happened to it.
type watched struct {
	ready   chan struct{}  // closed when the read that arms the watch has been answered
	changed recipes.Signal // given when the watch fires or can be relied upon no longer
	fired   bool
	told    []*recipes.Notices // told of the path then

	node  recipes.Node // of a node
	names []string     // of a list
	err   error

	stay map[context.Context]func() bool // of a list: those who wait for the node, if it is not there; each with what has their going not matter
}

func newView(s *Session) *view {
	return &view{session: s, nodes: make(map[string]*watched), lists: make(map[string]*watched), removals: make(map[string]chan struct{})}
}

// closed is a channel that is closed.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// fire tells those who watch the path, and lets the next one arm another watch. The event comes before the answer to any
// read that shows the change.
func (v *view) fire(event zk.EventType, path string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if event != zk.EventNodeChildrenChanged {
		if event == zk.EventNodeDeleted && v.nodes[path].settled() != nil && holdsUUID(path) {
			v.remember(path)
		}
		drop(v.nodes, path)
	}
	if event != zk.EventNodeDataChanged {
		drop(v.lists, path)
	}
}

// mostDeleted bounds what is remembered of contenders that were deleted. Whoever is forgotten is asked for again.
const mostDeleted = 4096

// remember notes that a contender's node stood and was deleted. The lock is held.
func (v *view) remember(path string) {
	if v.deleted == nil || len(v.deleted) >= mostDeleted {
		v.deleted = make(map[string]struct{})
	}
	v.deleted[path] = struct{}{}
}

// uuidInName is the last part of the path of a place that Enqueue makes, or Curator.
var uuidInName = regexp.MustCompile(`/_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-[^/]*$`)

// holdsUUID says whether a node of this path never comes back once it was deleted.
func holdsUUID(place string) bool { return uuidInName.MatchString(place) }

// SawDeleted implements recipes.Session.
func (s *Session) SawDeleted(path string) bool {
	v, _ := s.client.reader.current()
	if v == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_, deleted := v.deleted[path]
	return deleted
}

// fireAll tells everybody: the view has ended.
func (v *view) fireAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for path := range v.nodes {
		drop(v.nodes, path)
	}
	for path := range v.lists {
		drop(v.lists, path)
	}
}

func drop(watches map[string]*watched, path string) {
	if w := watches[path]; w != nil && !w.fired {
		w.fired = true
		w.changed.Give()
		delete(watches, path)
		for _, notices := range w.told {
			notices.Tell(path)
		}
		for _, stop := range w.stay {
			stop()
		}
		w.told, w.stay = nil, nil
	}
}

// share returns the watch on path, and whether the caller has to arm it.
func (v *view) share(watches map[string]*watched, path string) (w *watched, arm bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w := watches[path]; w != nil {
		return w, false
	}
	w = &watched{ready: make(chan struct{})}
	watches[path] = w
	return w, true
}

// settle publishes the answer to the read that arms w. A watch that was not armed is dropped.
func (v *view) settle(watches map[string]*watched, path string, w *watched, armed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !armed && watches[path] == w {
		drop(watches, path)
	}
	if v.session.Err() != nil && watches[path] == w {
		drop(watches, path) // fireAll may have been there before
	}
	close(w.ready)
}

// arm reads and then settles, in a goroutine of the session's: whoever comes first arms the watch for all, so it must not
// end with that asker. A watch that is being removed on that path is gone before.
func (v *view) arm(path string, w *watched, read, settle func()) {
	if !v.session.startWork() {
		w.err = fmt.Errorf("%w: %w", errUnsent, v.session.Err())
		settle()
		return
	}
	go func() {
		defer v.session.work.Done()
		v.awaitRemoval(path)
		read()
		settle()
	}()
}

// now is the node as it still is: its watch has not fired.
func (w *watched) now() recipes.Node {
	node := w.node
	node.Read = time.Now()
	return node
}

// settled is a watch that was armed without an error; otherwise nil.
func (w *watched) settled() *watched {
	if w == nil {
		return nil
	}
	select {
	case <-w.ready:
		if w.err == nil {
			return w
		}
	default:
	}
	return nil
}

// get reads a node, for nothing if its watch says that it has not changed.
func (v *view) get(a asker, path string) (recipes.Node, error) {
	v.mu.Lock()
	node, list := v.nodes[path].settled(), v.lists[path].settled()
	v.mu.Unlock()
	if node != nil {
		now := node.now()
		now.Children = -1
		if list != nil {
			now.Children = int32(len(list.names))
		}
		return now, nil
	}
	return wait(a, newFuture[recipes.Node]().launch(v.session, func() (recipes.Node, error) {
		return call(a.ctx, v.session, "getData", func(c *zk.Conn) (recipes.Node, error) {
			data, stat, err := c.Get(path)
			return nodeOf(data, stat), err
		})
	}))
}

// watch reads a node and arms a watch, unless there is one.
func (v *view) watch(a asker, path string) (watchedNode, error) {
	w := v.watched(a.ctx, path)
	if err := a.wait(w.ready); err != nil {
		return watchedNode{}, err
	}
	return watchedNode{w.now(), &w.changed}, w.err
}

// watched returns the watch on a node, armed or about to be.
func (v *view) watched(ctx context.Context, path string) *watched {
	w, arm := v.share(v.nodes, path)
	if arm {
		v.arm(path, w, func() {
			w.node, w.err = call(ctx, v.session, "getData", func(c *zk.Conn) (recipes.Node, error) {
				data, stat, _, err := c.GetW(path)
				return nodeOf(data, stat), err
			})
		}, func() { v.settle(v.nodes, path, w, w.err == nil) })
	}
	return w
}

// listed returns the watch on a node's list of children, armed, or that on its creation: then its error is ErrNoNode.
func (v *view) listed(a asker, path string) (*watched, error) {
	w, arm := v.share(v.lists, path)
	if arm {
		v.arm(path, w, func() {
			w.names, w.err = v.listOnce(path, func() ([]string, error) { return v.armList(a.ctx, path) })
		}, func() { v.settle(v.lists, path, w, w.err == nil || errors.Is(w.err, recipes.ErrNoNode)) })
	}
	v.keepFor(a.stays, path, w)
	if err := a.wait(w.ready); err != nil {
		return nil, err
	}
	if w.err != nil && !errors.Is(w.err, recipes.ErrNoNode) {
		return nil, w.err
	}
	return w, nil
}

func (v *view) armList(ctx context.Context, path string) ([]string, error) {
	for {
		names, err := call(ctx, v.session, "getChildren", func(c *zk.Conn) ([]string, error) {
			names, _, _, err := c.ChildrenW(path)
			return names, err
		})
		if !errors.Is(err, recipes.ErrNoNode) {
			return names, err
		}
		_, err = call(ctx, v.session, "exists", func(*zk.Conn) (struct{}, error) { return struct{}{}, v.session.existsWatched(path) })
		if err != nil {
			return nil, err
		}
	}
}

func nodeOf(data []byte, stat *zk.Stat) recipes.Node {
	if stat == nil {
		return recipes.Node{}
	}
	return recipes.Node{
		Data:     data,
		Version:  stat.Version,
		Czxid:    stat.Czxid,
		Mzxid:    stat.Mzxid,
		Owner:    stat.EphemeralOwner,
		Bare:     data == nil,
		Children: stat.NumChildren,
		Created:  time.UnixMilli(stat.Ctime),
		Modified: time.UnixMilli(stat.Mtime),
		Read:     time.Now(),
	}
}

// sharedRequests let callers who ask the same thing share one request, provided it was not sent before they asked.
type sharedRequests[T any] struct {
	mu      sync.Mutex
	waiting map[string]*future[T] // not sent yet
	sent    map[string]*future[T]
}

// join asks, together with all who come before the request is sent; it is sent when the one before it has been answered.
func (f *sharedRequests[T]) join(s *Session, key string, request func() (T, error)) *future[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == nil {
		f.waiting, f.sent = make(map[string]*future[T]), make(map[string]*future[T])
	}
	if mine := f.waiting[key]; mine != nil {
		return mine
	}
	before := f.sent[key]
	mine := newFuture[T]()
	f.waiting[key] = mine
	return mine.launch(s, func() (T, error) {
		if before != nil {
			<-before.done
		}
		f.leave(key, mine)
		defer f.land(key, mine)
		return request()
	})
}

func (f *sharedRequests[T]) leave(key string, mine *future[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.waiting, key)
	f.sent[key] = mine
}

func (f *sharedRequests[T]) land(key string, mine *future[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sent[key] == mine {
		delete(f.sent, key)
	}
}

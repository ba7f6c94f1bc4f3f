package zookeeper

import (
	"context"
	"errors"
	"maps"
	"path"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

const (
	mostNameBytes = readerBuffer / 2 // of the children of one directory; somebody may want their list for a long time yet

	countedFor    = 10 * time.Second // how long a count is believed
	fullFor       = time.Second      // and one that is too high
	mostCounted   = 10000            // directories whose counts are remembered
	mostUncounted = 16               // changes that nobody waits for while a directory is being counted
	fewChildren   = 2000             // so many have fewer than mostNameBytes of names
	listedAgain   = 10               // a list counts for as long as the directory has changed by less than one in so many
	addedAtMost   = 256 << 10        // and fewer bytes of names were noted since
)

// childCounts remembers how many children directories have, so that those with many get no more. Few wait for a count:
// those who would make a child of a directory that seems full, or one of many while it is being counted.
type childCounts struct {
	mu    sync.Mutex
	known map[string]*childCount
}

type childCount struct {
	children int
	bytes    int // of their list, by the last one and their number now; if they were few, of those made since then
	list     listCount
	until    time.Time
	changes  int               // that were noted since it was counted, or since that has begun
	counting *future[struct{}] // nil if it is not being counted
}

// A listCount is what the last list of a directory said. It is zero if the directory had few children when it was counted.
type listCount struct{ children, bytes, added int } // added: bytes of names that were noted since

// counts says whether the list still tells how many bytes so many children have.
func (l listCount) counts(children int) bool {
	changed := max(children-l.children, l.children-children)
	return l.children > 0 && changed <= l.children/listedAgain && l.added <= addedAtMost
}

// full says of a count that it is too high. The lock is held.
func (c *childCount) full(dir string, most int) error {
	if c.children >= most {
		return &recipes.FullDirectory{Path: dir, Limit: "max-children", Used: c.children, Max: most}
	}
	if c.bytes >= mostNameBytes {
		return &recipes.FullDirectory{Path: dir, Limit: "bytes of names", Used: c.bytes, Max: mostNameBytes}
	}
	return nil
}

// admitChild refuses a further child of a directory that has as many as it may.
func (r *reader) admitChild(a asker, child string) error {
	if r.client.config.MaxChildren == 0 {
		return nil
	}
	dir := path.Dir(child)
	counting, full := r.counts.look(r, dir)
	for tries := 0; counting != nil && tries < 2; tries++ { // what was made during a count may be in it twice: then it is counted again
		if _, err := wait(a, counting); err != nil {
			break
		}
		counting, full = r.counts.look(r, dir)
	}
	return full
}

// look says whether a directory is full, as far as is known, and has it counted if that was long ago. The count is to be waited for if
// one is returned.
func (c *childCounts) look(r *reader, dir string) (counting *future[struct{}], full error) {
	v, _ := r.current()
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.of(dir)
	full = known.full(dir, r.client.config.MaxChildren)
	due := time.Now().After(known.until) || full != nil && known.changes > 0
	if due && known.counting == nil && v != nil {
		counting := newFuture[struct{}]()
		known.counting, known.changes = counting, 0
		counting.launch(v.session, func() (struct{}, error) { return struct{}{}, c.count(r.client, v, dir) })
		if v.session.Err() != nil {
			known.counting = nil
		}
	}
	if full != nil || known.changes >= mostUncounted {
		return known.counting, full
	}
	return nil, nil
}

// of is what is known of a directory. The lock is held.
func (c *childCounts) of(dir string) *childCount {
	known := c.known[dir]
	if known != nil {
		return known
	}
	if len(c.known) >= mostCounted {
		now := time.Now()
		maps.DeleteFunc(c.known, func(_ string, known *childCount) bool { return known.counting == nil && now.After(known.until) })
	}
	if c.known == nil || len(c.known) >= mostCounted {
		c.known = map[string]*childCount{}
	}
	known = &childCount{}
	c.known[dir] = known
	return known
}

// count counts the children of a directory and, if they are many, the bytes of their names.
func (c *childCounts) count(client *Client, v *view, dir string) error {
	ctx := client.life
	c.mu.Lock()
	known := c.of(dir)
	before, list, bytes := known.children, known.list, 0
	c.mu.Unlock()
	children, err := call(ctx, v.session, "exists", func(conn *zk.Conn) (int, error) {
		_, stat, err := conn.Exists(dir)
		if err != nil {
			return 0, err
		}
		return int(stat.NumChildren), nil
	})
	switch {
	case err != nil:
	case children < fewChildren:
		list = listCount{}
	case list.counts(children):
		bytes = list.bytes * children / list.children
	default:
		bytes, err = v.listBytes(ctx, dir)
		list = listCount{children: children, bytes: bytes}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known = c.of(dir)
	known.counting = nil
	known.until = time.Now().Add(fullFor)
	if err != nil {
		return err
	}
	meanwhile := known.children - before
	known.children, known.bytes, known.list = children+meanwhile, bytes, list
	if known.full(dir, client.config.MaxChildren) == nil {
		known.until = time.Now().Add(countedFor)
	}
	return nil
}

// listBytes is what the list of a directory's children takes.
func (v *view) listBytes(ctx context.Context, dir string) (bytes int, err error) {
	names, err := v.children(asker{ctx: ctx}, dir)
	if large, is := errors.AsType[*recipes.LargeDirectory](err); is {
		return large.Bytes, nil
	}
	for _, name := range names {
		bytes += lengthBytes + len(name)
	}
	return bytes, err
}

// changed notes children that were made or deleted.
func (c *childCounts) changed(child string, more int) {
	dir, name := path.Split(child)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[path.Clean(dir)]; known != nil {
		known.children += more
		known.changes++
		bytes := more * (lengthBytes + len(name))
		known.bytes += bytes
		known.list.added += bytes
	}
}

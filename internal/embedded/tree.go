package embedded

import (
	"maps"
	"slices"
)

// A Stat is what ZooKeeper tells of a node besides its data.
type Stat struct {
	Czxid, Mzxid int64 // transactions that made the node and changed its data
	Ctime, Mtime int64 // their times, in milliseconds since 1970
	Version      int32 // changes of the data
	Cversion     int32 // changes of the list of children
	Aversion     int32 // changes of the access control list
	Owner        int64 // the session of an ephemeral node, else 0
	DataLength   int32
	ChildCount   int32
	Pzxid        int64 // transaction that last changed the list of children
}

// A node is one znode.
type node struct {
	data     []byte // nil and empty differ on the wire
	acl      []ACL
	stat     nodeStat
	children map[string]struct{}
}

// nodeStat is the part of a Stat that is stored.
type nodeStat struct {
	czxid, mzxid, pzxid int64
	ctime, mtime        int64
	version, aversion   int32
	created             int32 // children ever made here: the next sequence number
	owner               int64
}

// Describe gives the Stat that clients see. Its Cversion counts creates and deletes of children, and its Owner does not
// show that a node is a container or has a time to live.
func (n *node) Describe() Stat {
	owner := int64(0)
	if kindOf(n.stat.owner) == ephemeral {
		owner = n.stat.owner
	}
	return Stat{
		Czxid: n.stat.czxid, Mzxid: n.stat.mzxid, Pzxid: n.stat.pzxid,
		Ctime: n.stat.ctime, Mtime: n.stat.mtime,
		Version: n.stat.version, Aversion: n.stat.aversion,
		Cversion: 2*n.stat.created - int32(len(n.children)),
		Owner:    owner, DataLength: int32(len(n.data)), ChildCount: int32(len(n.children)),
	}
}

// Names lists the children.
func (n *node) Names() []string {
	return slices.Sorted(maps.Keys(n.children))
}

// A tree is all znodes by path. The root lies under "", the path of the parent of "/a".
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{} // by session
	ttls       map[string]struct{}
	idle       map[string]struct{} // containers that had children and have none
}

func newTree() *tree {
	t := &tree{
		nodes:      map[string]*node{},
		ephemerals: map[int64]map[string]struct{}{},
		ttls:       map[string]struct{}{},
		idle:       map[string]struct{}{},
	}
	t.nodes[""] = &node{data: []byte{}, acl: open, children: map[string]struct{}{}}
	for _, path := range []string{"/zookeeper", "/zookeeper/config", "/zookeeper/quota"} {
		t.attach(path, &node{data: []byte{}, acl: open})
	}
	t.nodes["/zookeeper/config"].acl = readableByAll
	t.nodes["/zookeeper/config"].stat.aversion = -1
	return t
}

// Find looks a node up by the path a client gave.
func (t *tree) Find(path string) (*node, error) {
	if path == "/" {
		path = ""
	}
	n, found := t.nodes[path]
	if !found {
		return nil, codeNoNode
	}
	return n, nil
}

// namesIn lists a node's children in order; none if it is missing.
func (t *tree) namesIn(path string) []string {
	n, err := t.Find(path)
	if err != nil {
		return nil
	}
	return n.Names()
}

// attach puts a node in its place and into the books of its kind. Its parent must be there.
func (t *tree) attach(path string, n *node) {
	parentPath, name := splitPath(path)
	parent := t.nodes[parentPath]
	if parent.children == nil {
		parent.children = map[string]struct{}{}
	}
	parent.children[name] = struct{}{}
	delete(t.idle, parentPath)
	t.nodes[path] = n
	switch kindOf(n.stat.owner) {
	case ephemeral:
		t.owned(n.stat.owner)[path] = struct{}{}
	case expiring:
		t.ttls[path] = struct{}{}
	}
}

// detach takes a node out of its place and out of the books.
func (t *tree) detach(path string) {
	n := t.nodes[path]
	delete(t.nodes, path)
	delete(t.ttls, path)
	delete(t.idle, path)
	if kindOf(n.stat.owner) == ephemeral {
		delete(t.ephemerals[n.stat.owner], path)
		if len(t.ephemerals[n.stat.owner]) == 0 {
			delete(t.ephemerals, n.stat.owner)
		}
	}
	parentPath, name := splitPath(path)
	parent := t.nodes[parentPath]
	delete(parent.children, name)
	if len(parent.children) == 0 && kindOf(parent.stat.owner) == container {
		t.idle[parentPath] = struct{}{}
	}
}

// owned is the set of a session's ephemeral nodes.
func (t *tree) owned(session int64) map[string]struct{} {
	if t.ephemerals[session] == nil {
		t.ephemerals[session] = map[string]struct{}{}
	}
	return t.ephemerals[session]
}

// Clone copies the tree, for a reader that lags behind. Data and access control lists are never changed in place.
func (t *tree) Clone() *tree {
	copied := &tree{nodes: make(map[string]*node, len(t.nodes))}
	for path, n := range t.nodes {
		twin := *n
		twin.children = maps.Clone(n.children)
		copied.nodes[path] = &twin
	}
	return copied
}

package embedded

import (
	"bytes"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// The methods of this file are other people's hands on the tree: they act at once, whatever any Session is doing.

var operator = caller{identities: []Identity{super}}

// Create makes a node, open to everybody, and containers for its missing parents. owner is the session an ephemeral
// node lives with. It returns the node's path.
func (e *Ensemble) Create(path string, data []byte, mode Mode, owner int64) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	parentPath, err := parentOf(path)
	if err == nil {
		err = e.MakeParents(parentPath)
	}
	if err != nil {
		return "", err
	}
	made := creation{path: path, data: data, acl: open, mode: mode, ttl: -1, kind: mode.kind()}
	if mode == Container {
		made.kind = container
	}
	by := caller{session: owner, identities: operator.identities}
	err = e.write(by, func(t *transaction) error {
		var err error
		path, _, err = t.create(made)
		return err
	})
	return path, err
}

// MakeParents makes path and all above it that is missing, as containers. The ensemble is locked.
func (e *Ensemble) MakeParents(path string) error {
	if _, err := e.tree.Find(path); err == nil {
		return nil
	}
	above, err := parentOf(path)
	if err == nil {
		err = e.MakeParents(above)
	}
	if err != nil {
		return err
	}
	return e.write(operator, func(t *transaction) error {
		_, _, err := t.create(creation{path: path, acl: open, mode: Container, ttl: -1, kind: container})
		return err
	})
}

// Set replaces a node's data.
func (e *Ensemble) Set(path string, data []byte) error {
	return e.operate(func(t *transaction) error {
		_, err := t.Set(path, data, -1)
		return err
	})
}

func (e *Ensemble) operate(change func(*transaction) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.write(operator, change)
}

// Delete deletes a node.
func (e *Ensemble) Delete(path string) error {
	return e.operate(func(t *transaction) error { return t.Delete(path, -1) })
}

// Deny takes every right on a node away from everybody, or gives them back.
func (e *Ensemble) Deny(path string, deny bool) error {
	list := open
	if deny {
		list = []ACL{{Permissions: permAll, Identity: Identity{Scheme: "digest", ID: "nobody:x"}}}
	}
	return e.operate(func(t *transaction) error {
		_, err := t.setACL(path, list, -1)
		return err
	})
}

// SetSequence sets the number that the next sequential child of a node will get.
func (e *Ensemble) SetSequence(path string, next int32) error {
	return e.adjust(path, func(n *node) { n.stat.created = next })
}

// SetVersion sets the version of a node's data.
func (e *Ensemble) SetVersion(path string, version int32) error {
	return e.adjust(path, func(n *node) { n.stat.version = version })
}

func (e *Ensemble) adjust(path string, change func(*node)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := e.tree.Find(path)
	if err == nil {
		change(n)
	}
	return err
}

// Read gives a node as the leader has it.
func (e *Ensemble) Read(path string) (recipes.Node, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tree.Read(path)
}

// Names lists a node's children as the leader has them, sorted; none if it is missing.
func (e *Ensemble) Names(path string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tree.namesIn(path)
}

// Zxid is the newest transaction's number.
func (e *Ensemble) Zxid() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.zxid
}

// Read gives a node as recipes see it.
func (t *tree) Read(path string) (recipes.Node, error) {
	n, err := t.Find(path)
	if err != nil {
		return recipes.Node{}, err
	}
	read := n.Shown()
	read.Data = bytes.Clone(n.data)
	return read, nil
}

// Shown is a node as recipes see it, without its data.
func (n *node) Shown() recipes.Node {
	stat := n.Describe()
	return recipes.Node{
		Version: stat.Version, Czxid: stat.Czxid, Mzxid: stat.Mzxid, Owner: stat.Owner,
		Bare: n.data == nil, Children: stat.ChildCount,
		Created: time.UnixMilli(stat.Ctime), Modified: time.UnixMilli(stat.Mtime), Read: time.Now(),
	}
}

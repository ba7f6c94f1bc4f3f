package embedded

import "fmt"

// A creation is a request to make a node.
type creation struct {
	path string
	data []byte
	acl  []ACL
	mode Mode
	ttl  int64 // milliseconds; −1 without
	kind kind  // what the operation makes, which is not always what the mode says
}

// create makes a node and returns its path, which differs from the one asked for if it is sequential. The checks are in
// ZooKeeper's order, since that order decides which error a client sees.
func (t *transaction) create(c creation) (string, *node, error) {
	if err := c.validate(); err != nil {
		return "", nil, err
	}
	parentPath, err := parentOf(c.path)
	if err != nil {
		return "", nil, err
	}
	acl, err := settle(c.acl, t.caller.identities)
	if err != nil {
		return "", nil, err
	}
	parent, err := t.tree.Find(parentPath)
	if err != nil {
		return "", nil, err
	}
	path, err := t.place(c, parent)
	if err != nil {
		return "", nil, err
	}
	made := &node{data: c.data, acl: acl, stat: nodeStat{
		czxid: t.zxid, mzxid: t.zxid, pzxid: t.zxid, ctime: t.now, mtime: t.now, owner: c.owner(t.caller.session),
	}}
	t.insert(path, parent, made)
	return path, made, nil
}

// place decides the new node's path and checks that it may be there.
func (t *transaction) place(c creation, parent *node) (string, error) {
	if err := permitted(parent.acl, permCreate, t.caller.identities); err != nil {
		return "", err
	}
	path := c.path
	if c.mode.sequential() {
		path += fmt.Sprintf("%010d", parent.stat.created)
	}
	if err := validPath(path); err != nil {
		return "", err
	}
	if _, err := t.tree.Find(path); err == nil {
		return "", codeNodeExists
	}
	if kindOf(parent.stat.owner) == ephemeral {
		return "", codeNoChildren
	}
	return path, nil
}

// validate checks mode and time to live against each other.
func (c creation) validate() error {
	if !c.mode.known() {
		return codeBadArguments
	}
	if c.mode.expiring() && (c.ttl <= 0 || c.ttl > longestTTL) || !c.mode.expiring() && c.ttl >= 0 {
		return codeBadArguments
	}
	return nil
}

// owner is the number that stands for the new node's kind, or its session.
func (c creation) owner(session int64) int64 {
	switch c.kind {
	case container:
		return containerOwner
	case expiring:
		return expiringMark | c.ttl
	case ephemeral:
		return session
	}
	return 0
}

// Delete takes a node away that has no children and this version; −1 for any.
func (t *transaction) Delete(path string, version int32) error {
	parentPath, err := parentOf(path)
	if err == nil && special(path) {
		err = codeBadArguments
	}
	if err != nil {
		return err
	}
	parent, err := t.tree.Find(parentPath)
	if err != nil {
		return err
	}
	if err := permitted(parent.acl, permDelete, t.caller.identities); err != nil {
		return err
	}
	n, err := t.tree.Find(path)
	if err != nil {
		return err
	}
	if version != -1 && version != n.stat.version {
		return codeBadVersion
	}
	if len(n.children) > 0 {
		return codeNotEmpty
	}
	t.remove(path, n)
	return nil
}

// Set replaces the data of a node that has this version; −1 for any.
func (t *transaction) Set(path string, data []byte, version int32) (*node, error) {
	n, err := t.access(path, permWrite)
	if err != nil {
		return nil, err
	}
	next, err := successor(n.stat.version, version)
	if err != nil {
		return nil, err
	}
	t.keep(n)
	n.data = data
	t.set = append(t.set, path)
	n.stat.version, n.stat.mzxid, n.stat.mtime = next, t.zxid, t.now
	t.note(eventDataChanged, path, n.acl)
	return n, nil
}

// setACL replaces the access control list of a node whose list has this version; −1 for any.
func (t *transaction) setACL(path string, list []ACL, version int32) (*node, error) {
	if err := validPath(path); err != nil {
		return nil, err
	}
	settled, err := settle(list, t.caller.identities)
	if err != nil {
		return nil, err
	}
	n, err := t.access(path, permAdmin)
	if err != nil {
		return nil, err
	}
	next, err := successor(n.stat.aversion, version)
	if err != nil {
		return nil, err
	}
	t.keep(n)
	n.acl, n.stat.aversion = settled, next
	return n, nil
}

// Check refuses unless the node has this version; −1 for any.
func (t *transaction) Check(path string, version int32) error {
	n, err := t.access(path, permRead)
	if err != nil {
		return err
	}
	_, err = successor(n.stat.version, version)
	return err
}

// access finds a node that the caller may use like this.
func (t *transaction) access(path string, permission int32) (*node, error) {
	if err := validPath(path); err != nil {
		return nil, err
	}
	n, err := t.tree.Find(path)
	if err != nil {
		return nil, err
	}
	return n, permitted(n.acl, permission, t.caller.identities)
}

// successor is the version after current, if current is the one expected. It never is −1, which means any.
func successor(current, expected int32) (int32, error) {
	if expected != -1 && expected != current {
		return 0, codeBadVersion
	}
	if current == -2 {
		return 0, nil
	}
	return current + 1, nil
}

// deleteContainer takes a childless node away that is not ephemeral, without asking for rights: servers send this to
// themselves, and answer clients that do.
func (t *transaction) deleteContainer(path string) error {
	if _, err := parentOf(path); err != nil {
		return err
	}
	if special(path) {
		return codeBadArguments
	}
	n, err := t.tree.Find(path)
	if err != nil {
		return err
	}
	if len(n.children) > 0 {
		return codeNotEmpty
	}
	if kindOf(n.stat.owner) == ephemeral {
		return codeBadVersion
	}
	t.remove(path, n)
	return nil
}

package recipes

import (
	"context"
	"errors"
	"fmt"
)

// Errors of writes.
var (
	// ErrExists means that there is such a node already.
	ErrExists = errors.New("node exists")
	// ErrNotEmpty means that the node has children, so that it cannot be deleted.
	ErrNotEmpty = errors.New("node has children")
	// ErrNoChildren means that the parent is ephemeral, so that nothing can lie in it.
	ErrNoChildren = errors.New("ephemeral nodes have no children")
	// ErrTooLarge means that the changes are more than an ensemble accepts in one request. Nothing was sent.
	ErrTooLarge = errors.New("too many bytes in one transaction")
)

// MostBytes is the longest request that an ensemble accepts unless it is told otherwise (jute.maxbuffer): the paths and data
// of all changes, and some 30 bytes for each.
const MostBytes = 0xfffff

// A Store is a Tree that can be written to. Nothing written through it belongs to a session.
type Store interface {
	Tree

	// Commit carries out all the changes, in order, or none, in one transaction. It returns what each Set has made of its
	// node, at the place of the Set, without the data; the other places are zero. A *Refusal says which change the
	// ensemble refused; with ErrUnreachable, ErrTooLarge or the cause of ctx alone, nothing was sent. ErrOutcomeUnknown if
	// the reply was lost, or ctx ended before it came. If the reply was lost, a CatchUp begun afterwards returns when the changes have
	// been carried out or never will be. If ctx ended, or the process does, they may still be carried out later, for about as long as a
	// session lives without its client: a server that stood still may have them. So each transaction must hold a change that depends on
	// what its caller has seen: a version, or that a node is there or is not. What Commit is given must not be modified any more.
	Commit(ctx context.Context, changes ...Change) ([]Node, error)

	// MakeDirectory makes path and what it lies in, where it is missing, as containers: nodes that the ensemble removes
	// some time after their last child has gone, even if they have been given data meanwhile. They are Bare. The configured
	// directories are made as nodes that stay. It is as good if another program makes them.
	MakeDirectory(ctx context.Context, path string) error
}

// A Change is one write of a transaction, or one condition of it. Make it with the functions below.
type Change struct {
	Kind    Kind
	Path    string
	Data    []byte
	Version int32 // −1 for any

	Numbered bool // of a node that is made: the ensemble appends a number to its name
}

// Kind is what a Change does.
type Kind int

// The kinds of changes.
const (
	KindCreate Kind = iota + 1
	KindSet
	KindDelete
	KindCheck
)

// Create makes a node that stays. ErrExists if it is there, ErrNoNode if its parent is missing, ErrNoChildren. With nil for data
// the node is Bare; empty data is not nil.
func Create(path string, data []byte) Change {
	return Change{Kind: KindCreate, Path: path, Data: data, Version: -1}
}

// CreateNumbered makes a node as Create does, to whose name the ensemble appends a number of ten digits: one more than the last that it gave
// out in the directory, or larger. That depends on nothing that its caller has seen: if the reply is lost, the node may be made later, and is
// one of its own whenever it is asked for again.
func CreateNumbered(path string, data []byte) Change {
	return Change{Kind: KindCreate, Path: path, Data: data, Version: -1, Numbered: true}
}

// Set replaces a node's data if it has this version. ErrNoNode, ErrBadVersion.
func Set(path string, data []byte, version int32) Change {
	return Change{Kind: KindSet, Path: path, Data: data, Version: version}
}

// Delete removes a node without children if its data has this version. ErrNoNode, ErrBadVersion, ErrNotEmpty.
func Delete(path string, version int32) Change {
	return Change{Kind: KindDelete, Path: path, Version: version}
}

// Check is refused unless the node is there and its data has this version. ErrNoNode, ErrBadVersion.
func Check(path string, version int32) Change {
	return Change{Kind: KindCheck, Path: path, Version: version}
}

// A Refusal is why a transaction was not carried out: the first of its changes that could not be.
type Refusal struct {
	Index int // of the change
	Err   error
}

func (r *Refusal) Error() string { return fmt.Sprintf("change %d: %v", r.Index, r.Err) }
func (r *Refusal) Unwrap() error { return r.Err }

// A MemberSession is a Session that can own nodes with names of the caller's choice. Such a name may have been another
// session's before and may be one's again after, so that nothing is done to a node but in the version in which it was seen to be
// this session's. Versions begin anew with each node: what another program deletes and makes again in the same version, between
// that look and the deed, is taken for the session's own. So a program that removes others' members marks them first, which
// changes the version, and leaves their session time to end or to act. Nodes are returned without their data.
type MemberSession interface {
	Session

	// Create makes an ephemeral node, and the missing parents with it as containers. It cannot be cancelled: it returns
	// when the node is certainly there and this session's, or certainly not; ErrExists if there is such a node, ErrTooManyBytes,
	// ErrTooLarge beyond 1 KiB of path and 8 KiB of data. gone is closed if the session finds that another program deleted
	// the node: it may find that late, and not at all if there is another one by then; a Watch is sure. A path must not be
	// created again by this session before Delete has returned, or gone is closed. It is made only while the guards' places stand: a
	// *GuardLost says that one is gone.
	Create(ctx context.Context, path string, data []byte, guards ...Guard) (node Node, gone *Signal, err error)

	// Delete deletes a node that Create made, if it is still this session's, and retries until it is gone or the session
	// has ended.
	Delete(ctx context.Context, path string)
}

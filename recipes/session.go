// Package recipes holds Sidekeeper's distributed algorithms, which ZooKeeper calls recipes: locks, semaphores, sequences, groups and
// configuration. A file's name begins with its feature: lock_queue.go, sequence_state.go, group_evict.go, config_commit.go.
//
// A recipe sees ZooKeeper through small interfaces. A Tree reads nodes and watches them; a Store also writes them, in transactions; a Session
// also owns nodes, which vanish with it. So the recipes run unchanged on a real ensemble and on one in memory. Each is meant to read like its
// description in the ZooKeeper manual. It runs in its caller's goroutine, logs nothing and never calls back.
package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that a Tree or a Session returns. Anything else is a surprise.
var (
	// ErrNoNode means that the node is not there.
	ErrNoNode = errors.New("no such node")
	// ErrBadVersion means that the node's data has another version.
	ErrBadVersion = errors.New("node has another version")
	// ErrDenied means that the ensemble's access control refused.
	ErrDenied = errors.New("denied by the ensemble's access control: " +
		"have an operator compare the sidecar's credentials with the nodes' access control lists, which sidekeeper doctor names")
	// ErrAuthDemanded means that the ensemble answers nothing to a client that has not authenticated as it demands; nothing was done.
	ErrAuthDemanded = errors.New("the ensemble demands authentication: set --zookeeper-auth-file for its scheme digest, " +
		"--zookeeper-sasl for sasl, or --zookeeper-tls-cert and --zookeeper-tls-key for x509")
	// ErrUnauthenticated means that the sidecar and the ensemble have not proved to each other who they are, as settings demand; nothing was done.
	ErrUnauthenticated = errors.New("the sidecar and the ensemble have not proved to each other who they are, as --zookeeper-sasl demands")
	// ErrLocalSession means that the ensemble makes no node that belongs to a session; nothing was done.
	ErrLocalSession = errors.New("the ensemble makes no ephemeral nodes for local sessions: " +
		"set localSessionsEnabled=false, or localSessionsUpgradingEnabled=true, at its servers")
	// ErrUnreachable means that the ensemble does not answer; nothing was sent.
	ErrUnreachable = errors.New("the ensemble does not answer")
	// ErrRestored means that the ensemble's state is older than it was, so that fencing tokens would repeat; nothing was sent.
	ErrRestored = fmt.Errorf("%w: restored from an older state, so that fencing tokens would repeat", ErrUnreachable)
	// ErrOutcomeUnknown means that a reply was lost and what became of the request cannot be found out.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrSessionEnded means that the session has ended, so that nothing it owned is owned any more.
	ErrSessionEnded = errors.New("session ended")
	// ErrConnectionLimit means that the ensemble refuses further connections from this address.
	ErrConnectionLimit = errors.New("the ensemble refuses further connections from this address (its maxClientCnxns)")
	// ErrUnsafeTimeout means that sessions of this timeout cannot be kept proved.
	ErrUnsafeTimeout = errors.New("session timeout too short to be proved")
	// ErrTooManyBytes means that the session owns as many bytes of ephemeral paths as it may.
	ErrTooManyBytes = errors.New("too many bytes of ephemeral paths in one session")
	// ErrDirectoryTooLarge means that a node has so many children that their list is not read, or that it gets no more. Asking again
	// does not help.
	ErrDirectoryTooLarge = errors.New("too many names in one directory")
	// ErrQuota means that there would be more at and below a path than its quota in the ensemble allows. Nothing was done.
	ErrQuota = errors.New("quota exceeded")
)

// A Node is what a read has shown of one znode.
type Node struct {
	Data     []byte
	Version  int32     // of the data
	Czxid    int64     // the transaction that made the node
	Mzxid    int64     // the transaction that last set its data, or made it
	Owner    int64     // the session the node lives with; 0 if it is not ephemeral
	Bare     bool      // whether it has no data, not even empty data: so are MakeDirectory's nodes (a Stat tells no container)
	Children int32     // how many it has; −1 if it is watched but its list is not, which does not tell when that changes
	Created  time.Time // by the clock of the ensemble's leader
	Modified time.Time // by that clock, too: when its data were set
	Read     time.Time // when this was read, by the local clock; ages are Read − Created
}

// A Tree is the ensemble as one sidecar's shared reader sees it. What it shows may be late, but never out of order: each
// call sees all that an earlier call on the same Tree has shown. Calls return when the ensemble has answered, when
// ctx ends (with its cause) or when the ensemble is given up (ErrUnreachable).
type Tree interface {
	// Children lists the names of a node's children, in no order. ErrNoNode if the node is missing. Others may have the same list: it is
	// for reading.
	Children(ctx context.Context, path string) ([]string, error)

	// WatchChildren lists as Children does and returns a signal that is given when the list may have changed. With
	// ErrNoNode it is given when the node may have been made.
	WatchChildren(ctx context.Context, path string) ([]string, *Signal, error)

	// Get reads a node.
	Get(ctx context.Context, path string) (Node, error)

	// Watch reads a node with a watch: the signal is given when the node may have changed or gone. There is none
	// with an error. A node that is already watched costs no request.
	Watch(ctx context.Context, path string) (Node, *Signal, error)

	// CatchUp returns when the Tree shows everything that had been committed when it was called.
	CatchUp(ctx context.Context) error
}

// Enqueued is a node that Enqueue has made.
type Enqueued struct {
	Path string // of the node
	Name string
	Gone *Signal // given if the session finds that another program has deleted the node, perhaps late: a Watch is sooner

	// What came with the answer; zero if the answer was lost, or the queue is long. Queue is the list of dir's children as it was once
	// the node stood there: it shows the node, unless that has gone again, and every node made before it that had not gone.
	Czxid   int64
	Queue   []string
	HasData bool   // whether dir had any then
	Beside  []byte // the data of the node beside, as they were read after Queue; nil if there was none
}

// A QueueEnd is where EnqueueAll makes one of its nodes.
type QueueEnd struct{ Dir, Marker string }

// A Placer makes and deletes places, which belong to a session.
type Placer interface {
	// Enqueue makes an ephemeral sequential child of dir whose name is `_c_`, a fresh uuid, marker and the sequence
	// number, and the missing parents with it. It cannot be cancelled: it returns when the node is certainly there and
	// this session's, or certainly not. The data of a node beside, if one is named, come with the answer.
	Enqueue(ctx context.Context, dir, marker string, data []byte, beside ...string) (Enqueued, error)

	// EnqueueThen is Enqueue for those who must not wait: then is called at some time, perhaps before it returns, by whatever goroutine has
	// the answer, and must not wait either.
	EnqueueThen(ctx context.Context, dir, marker string, data []byte, then func(Enqueued, error), beside ...string)

	// EnqueueAll makes a node at each of the ends, as Enqueue does, in one transaction and with one uuid. When it returns, all of them had been
	// made and were this session's, or none stands.
	EnqueueAll(ctx context.Context, ends []QueueEnd, data []byte) ([]Enqueued, error)

	// Dequeue deletes a node that Enqueue made, and retries until it is gone or the session has ended.
	Dequeue(ctx context.Context, path string)

	// DequeueThen is Dequeue as EnqueueThen is Enqueue.
	DequeueThen(ctx context.Context, path string, then func())
}

// A Session is what recipes need of one ZooKeeper session that owns things. Its calls return when the server has
// answered or the session has ended (ErrSessionEnded), whichever is first. The context of a call that cannot be cancelled only says on
// whose behalf it is made, for traces.
type Session interface {
	Tree
	Placer

	// Update replaces the data of a node of the session's whose data have this version, and returns the node then. It cannot be cancelled
	// either. ErrNoNode if the node is gone or not this session's any more; ErrBadVersion if the data have another version, or if they
	// are replaced and the reply was lost. Updates of one node are made one after the other. It is carried out only while the guards' places
	// stand: a *GuardLost says that one is gone.
	Update(ctx context.Context, path string, data []byte, version int32, guards ...Guard) (Node, error)

	// SawDeleted says whether the reader was told, by the event of a watch that stood on the node, that this child of a lock's directory was
	// deleted. Its name holds a uuid, so that it never comes back. False says nothing. It takes no request.
	SawDeleted(path string) bool

	// Owns says whether the node lives with this session.
	Owns(node Node) bool

	// WatchOwn reads a place of the session's as Watch does. A caller that finds nothing in the data that asks for the place's end
	// calls seen, and no other caller does. The session is valid
	// for only so long after the last moment at which none of its places certainly had data that were not seen: then
	// a program that asks for an end and waits for the session's timeout and a tick finds no caller that counts on the place. The data
	// that a place was made with count as seen.
	WatchOwn(ctx context.Context, place string) (node Node, changed *Signal, seen func(), err error)

	// Seen says so of a version that the caller has written itself.
	Seen(place string, version int32)

	// Disregard lets a place that no caller counts on any more, though it still stands, bound the validity no longer.
	Disregard(place string)

	// Prove returns when the session's validity is running, that is, when it is certainly this caller's for some
	// time to come.
	Prove(ctx context.Context) error

	// Done is closed when the session has ended, which it does once and for good.
	Done() <-chan struct{}
}

// A SessionKey is what a process comes back to a session of the ensemble with, also another one than that which opened it. It is a secret:
// a process that has it has the session.
type SessionKey struct {
	ID       int64         `json:"id"`
	Password []byte        `json:"password"`   // 16 bytes
	Timeout  time.Duration `json:"timeout_ns"` // as it was negotiated
}

// A Standing is a node that a session owned when a process came back to it.
type Standing struct {
	Path string
	Node Node
}

// An Adopter is a session that a process has come back to.
type Adopter interface {
	MemberSession

	// Adopt takes over a node that the session owned by then, and whose data do not ask for its end. It is named if others may make a node
	// of that path later. gone is as Enqueued.Gone. ErrTooManyBytes, ErrSessionEnded.
	Adopt(standing Standing, named bool) (gone *Signal, err error)
}

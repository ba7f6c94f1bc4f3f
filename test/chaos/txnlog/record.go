package txnlog

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/jute"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// A Transaction is one entry of a log: what one request, or the leader by itself, has changed, all or nothing.
type Transaction struct {
	Zxid    int64
	Session int64 // whose request it was; 0 if nobody's
	// Cxid is the request's number in its session. The leader's own have 0: the end of a session that expired.
	Cxid int32
	// Time is what the leader's clock showed when it took the request up, which is before anybody could see its effect, in
	// whole milliseconds.
	Time time.Time
	// Changes is what was done, in order; nothing if the request failed.
	Changes []Change
	// Failed is the code of a request that failed, 0 if it did not.
	Failed int32

	content uint64 // a sum over header and changes as they are stored
}

// A Change is a part of a transaction. Only the fields that its Kind has are set.
type Change struct {
	Kind    Kind
	Path    string
	Data    []byte
	Version int32         // of the data, after a Set
	Owned   bool          // created as ephemeral, so that it goes with the session
	Timeout time.Duration // of a session that begins
	Paths   []string      // of nodes that go with a session that ends, as its leader knew them
}

// Kind is what a change does.
type Kind int

// The kinds of changes.
const (
	Other        Kind = iota // to nothing that this package follows: an ACL, the ensemble's own configuration, a check
	Create                   // a node of whichever sort
	Delete                   // a node, also one that the leader removed since it was an empty container, or its time was over
	Set                      // a node's data
	BeginSession             // whose id is the transaction's
	EndSession               // likewise
)

// Types of transactions that are no requests of clients.
const (
	failure         link.Opcode = -1
	deleteContainer link.Opcode = 20
)

var seed = maphash.MakeSeed()

var errRecord = errors.New("the record makes no sense")

// transactionHeader is the length of what every transaction begins with: session, cxid, zxid, time and type.
const transactionHeader = 8 + 4 + 8 + 8 + 4

// readTransaction reads the content of one entry.
func readTransaction(entry []byte) (Transaction, error) {
	d := jute.NewDecoder(entry)
	transaction := Transaction{Session: d.Int64(), Cxid: d.Int32(), Zxid: d.Int64(), Time: time.UnixMilli(d.Int64())}
	kind := link.Opcode(d.Int32())
	err := readBody(&transaction, kind, d)
	if err == nil && d.Failed() {
		err = errRecord
	}
	if err != nil {
		return Transaction{}, fmt.Errorf("zxid %#x, %s: %w", transaction.Zxid, kind, err)
	}
	// What follows is a digest of the tree, which depends on the server's version.
	stored := entry[:len(entry)-d.Left()]
	if transaction.Failed != 0 {
		stored = entry[:transactionHeader]
	}
	transaction.content = maphash.Bytes(seed, stored)
	return transaction, nil
}

func readBody(t *Transaction, kind link.Opcode, d *jute.Decoder) error {
	switch kind {
	case failure:
		t.Failed = d.Int32()
		return nil
	case link.Multi:
		return readMulti(t, d)
	}
	change, err := readChange(kind, d)
	t.Changes = []Change{change}
	return err
}

// readMulti reads what a multi has done. In one that failed, the parts before the one that failed stand as if they were done, or
// as failures with the content of what they were: a server that learns late of what others have agreed on has changed the parts
// in its memory before it writes them. So what such a part holds is a code only where it is negative.
func readMulti(t *Transaction, d *jute.Decoder) error {
	for range d.Length(8) {
		kind, part := link.Opcode(d.Int32()), jute.NewDecoder(d.Bytes())
		if kind == failure {
			if code := part.Int32(); code < 0 {
				t.Failed = cmp.Or(t.Failed, code)
			}
			continue
		}
		change, err := readChange(kind, part)
		if err != nil || part.Failed() {
			return fmt.Errorf("%s in a multi: %w", kind, errors.Join(err, errRecord))
		}
		t.Changes = append(t.Changes, change)
	}
	if t.Failed != 0 {
		t.Changes = nil
	}
	return nil
}

func readChange(kind link.Opcode, d *jute.Decoder) (Change, error) {
	switch kind {
	case link.Create, link.Create2, link.CreateContainer, link.CreateTTL:
		return readCreate(kind, d), nil
	case link.Delete, deleteContainer:
		return Change{Kind: Delete, Path: d.Text()}, nil
	case link.SetData:
		return Change{Kind: Set, Path: d.Text(), Data: d.Bytes(), Version: d.Int32()}, nil
	case link.CreateSession:
		return Change{Kind: BeginSession, Timeout: time.Duration(d.Int32()) * time.Millisecond}, nil
	case link.CloseSession:
		return readEnd(d), nil
	case link.SetACL, link.Check, link.Reconfig:
		return readOther(kind, d), nil
	}
	return Change{}, fmt.Errorf("type %d is not known", int32(kind))
}

func readCreate(kind link.Opcode, d *jute.Decoder) Change {
	change := Change{Kind: Create, Path: d.Text(), Data: d.Bytes()}
	skipACL(d)
	if kind == link.Create || kind == link.Create2 {
		change.Owned = d.Bool()
	}
	d.Int32() // the parent's number of changes
	if kind == link.CreateTTL {
		d.Int64()
	}
	return change
}

// readEnd reads the paths; servers before 3.6 leave them out.
func readEnd(d *jute.Decoder) Change {
	change := Change{Kind: EndSession}
	if d.Left() > 0 {
		change.Paths = d.Texts()
	}
	return change
}

func readOther(kind link.Opcode, d *jute.Decoder) Change {
	change := Change{Kind: Other, Path: d.Text()}
	switch kind {
	case link.SetACL:
		skipACL(d)
	case link.Reconfig:
		d.Bytes()
	}
	d.Int32() // a version
	return change
}

func skipACL(d *jute.Decoder) {
	const least = 12 // permissions and the lengths of two strings
	for range d.Length(least) {
		d.Int32()
		d.Optional()
		d.Optional()
	}
}

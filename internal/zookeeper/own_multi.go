package zookeeper

import (
	"encoding/binary"
	"errors"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/jute"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// An operation is what changes one node, or checks its version, by itself or in a multi.
type operation struct {
	kind   int32
	path   string
	data   []byte   // of what makes the node or sets its data
	acl    []zk.ACL // of what makes the node
	number int32    // the flags of what makes the node; the version that it must have otherwise
}

func checkOf(path string, version int32) operation {
	return operation{kind: opCheck, path: path, number: version}
}

// request asks for the operation by itself.
func (o operation) request() ownRequest { return ownRequest{kind: o.kind, body: o.appendTo(nil)} }

func (o operation) appendTo(b []byte) []byte {
	makes := o.kind == opCreate || o.kind == opCreateContainer
	b = appendText(b, o.path)
	if makes || o.kind == opSetData {
		b = appendData(b, o.data)
	}
	if makes {
		b = appendACL(b, o.acl)
	}
	return binary.BigEndian.AppendUint32(b, uint32(o.number))
}

// mostResult is the longest result of the operation in a multi.
func (o operation) mostResult() int {
	switch o.kind {
	case opCreate:
		return operationBytes + lengthBytes + len(o.path) + sequenceSize
	case opSetData:
		return operationBytes + statBytes
	}
	return operationBytes + numberBytes // where it was refused
}

// A result is what an operation of a multi has done.
type result struct {
	path string   // of a node that was made
	stat *zk.Stat // of one whose data were set
}

// multi carries out all the operations or none; a *recipes.Refusal says which was refused.
func (s *Session) multi(operations ...operation) ([]result, error) {
	return s.multiUnless(nil, operations...)
}

// multiUnless is multi, which is not sent any more once something has happened.
func (s *Session) multiUnless(happened *atomic.Bool, operations ...operation) ([]result, error) {
	request := multiOf(operations...)
	request.unless = happened
	answered, err := s.askOwn(request)
	if err != nil {
		return nil, err
	}
	return resultsIn(answered[0].answer, operations)
}

// operationRoom is for what an operation has besides its path and its data: an access control list of one entry, as a rule.
const operationRoom = 48

// multiOf asks for all the operations or none.
func multiOf(operations ...operation) ownRequest {
	size := operationBytes
	for _, each := range operations {
		size += operationBytes + operationRoom + len(each.path) + len(each.data)
	}
	request := ownRequest{kind: opMulti, most: replyHead + operationBytes, body: make([]byte, 0, size)}
	for _, each := range operations {
		request.body = each.appendTo(appendOperation(request.body, each.kind, false))
		request.most += each.mostResult()
	}
	request.body = appendOperation(request.body, opError, true)
	return request
}

// resultsIn reads the answer to a multi. Where an operation was refused, the server says of those before it that they were not, and of those
// after it an error of their own. An answer that does not have a result for each operation, as that operation has it, tells nothing.
func resultsIn(answer []byte, operations []operation) ([]result, error) {
	from, results := jute.NewDecoder(answer), make([]result, len(operations))
	for i, each := range operations {
		switch kind := kindIn(from); {
		case kind == opError:
			if err := refusalIn(from); err != nil {
				return nil, refusalOf(i, err)
			}
			operations = nil // of which none was carried out
		case kind != each.kind:
			return nil, zk.ErrAPIError
		case kind == opCreate:
			results[i].path = from.Text()
		case kind == opSetData:
			stat := statIn(from)
			results[i].stat = &stat
		}
	}
	if kindIn(from) != noKind || from.Failed() || operations == nil {
		return nil, zk.ErrAPIError
	}
	return results, nil
}

// noKind stands where there is no further result.
const noKind = 0

// kindIn reads what stands before a result.
func kindIn(results *jute.Decoder) int32 {
	kind, done, _ := results.Int32(), results.Bool(), results.Int32()
	if done || results.Failed() {
		return noKind
	}
	return kind
}

// refusalIn reads why an operation was refused, if it was.
func refusalIn(results *jute.Decoder) error {
	if code := results.Int32(); code != 0 {
		return libraryError(code)
	}
	return nil
}

// refusalOf is that the operation of that number was refused, unless the whole session is.
func refusalOf(index int, err error) error {
	if errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved) {
		return err
	}
	return &recipes.Refusal{Index: index, Err: translated(err)}
}

// statIn reads a node's Stat.
func statIn(from *jute.Decoder) zk.Stat {
	return zk.Stat{
		Czxid: from.Int64(), Mzxid: from.Int64(), Ctime: from.Int64(), Mtime: from.Int64(),
		Version: from.Int32(), Cversion: from.Int32(), Aversion: from.Int32(),
		EphemeralOwner: from.Int64(), DataLength: from.Int32(), NumChildren: from.Int32(), Pzxid: from.Int64(),
	}
}

// statOf is the answer to a request of our own that is a node's Stat.
func (s *Session) statOf(request ownRequest) (*zk.Stat, error) {
	answered, err := s.askOwn(request)
	if err != nil {
		return nil, err
	}
	return answered[0].stat()
}

// stat is the answer to a request for a node's Stat.
func (r *ownRequest) stat() (*zk.Stat, error) {
	if r.err != nil {
		return nil, r.err
	}
	from := jute.NewDecoder(r.answer)
	stat := statIn(from)
	if from.Failed() {
		return nil, zk.ErrShortBuffer // as the library has it: the outcome is not known
	}
	return &stat, nil
}

// existsOf asks for a node's Stat. zk.ErrNoNode if there is none.
func existsOf(path string) ownRequest {
	return ownRequest{kind: opExists, body: append(appendText(nil, path), 0)}
}

// existsWatched is exists, and arms a watch, of which the library does not know.
func (s *Session) existsWatched(path string) error {
	_, err := s.askOwn(ownRequest{kind: opExists, body: append(appendText(nil, path), 1)})
	return err
}

// dataWatches is the kind of watches that exists arms, as ZooKeeper's WatcherType numbers it.
const dataWatches = 2

// removeWatch has the server forget the session's watch of a node's data, if there is one.
func (s *Session) removeWatch(path string) {
	_, _ = s.askOwn(ownRequest{kind: opRemoveWatches, body: binary.BigEndian.AppendUint32(appendText(nil, path), dataWatches)})
}

// appendOperation appends what stands before an operation of a multi, or after the last one.
func appendOperation(b []byte, kind int32, done bool) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(kind))
	if done {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return binary.BigEndian.AppendUint32(b, 1<<32-1)
}

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

// appendData appends a node's data: none are something else than empty ones.
func appendData(b, data []byte) []byte {
	if data == nil {
		return binary.BigEndian.AppendUint32(b, 1<<32-1)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
}

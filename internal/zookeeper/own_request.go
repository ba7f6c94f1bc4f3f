package zookeeper

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/jute"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// What leases ask for, heartbeats above all, and whatever is written goes out as requests of our own, which travel over the library's
// connection under numbers that the library does not reach. A session uses none twice, as the library does not either: a server takes a
// transaction that is committed for what it is asked under the same number by the same session, over whatever connection; one that is come back
// to begins anywhere among them. Their answers are
// taken out before the library sees them. So a request takes one write and one wake-up.
const firstOwnXid = 1 << 30

// mostQueue is the longest list in bytes that is read behind the making of a place, some 250 names. Longer ones are the reader's, which reads
// them for all who ask.
const mostQueue = 16 << 10

// An ownRequest is a request of our own without its length and number, and what came of it.
type ownRequest struct {
	kind int32
	path string // of a list
	body []byte
	most int // the longest answer, head and all, if it may be longer than leaseAnswer

	unless *atomic.Bool // it is not sent once that is set; nil for one that always is

	answer []byte
	err    error // as the library would have it
}

// size is how long the request is, with what stands before it.
func (r *ownRequest) size() int { return frameLength + headerBytes + len(r.body) }

// A batch is requests of our own that are written together, so that each is carried out behind the one before. It is answered once: by
// the connection's reader, or by whoever ends the connection.
type batch struct {
	requests []ownRequest
	known    int64        // the newest state that was known when they were sent
	left     atomic.Int32 // requests without an answer
	asked    request      // of which they are the attempt; of a heartbeat when it was sent alone, and nothing for askOwn
	answered func(*batch) // called then, by the goroutine that has taken the last answer; it waits for nothing
}

func newBatch(answered func(*batch), requests ...ownRequest) *batch {
	b := &batch{requests: requests, answered: answered}
	b.left.Store(int32(len(requests)))
	return b
}

// size is how long the requests are together.
func (b *batch) size() (sum int) {
	for i := range b.requests { // not copies: see send
		sum += b.requests[i].size()
	}
	return sum
}

// take takes the answer to one of the requests.
func (b *batch) take(request *ownRequest, answer []byte, err error) {
	request.answer, request.err = answer, err
	if b.left.Add(-1) == 0 {
		b.answered(b)
	}
}

// outcome is what has come of the requests: the error of the first.
func (b *batch) outcome() error { return b.asked.answered(b.requests[0].err) }

// awaitsOwn says whether the answer that is due is to a request of our own of this kind: the list behind the making of a place, say.
func (w *wire) awaitsOwn(kind int32) bool {
	w.asking.Lock()
	defer w.asking.Unlock()
	due, ok := w.asked.oldest()
	return ok && due.own != nil && due.kind == kind
}

// mostOfOwn is how long the answer may be that is due, if it is to a request of our own; otherwise 0.
func (w *wire) mostOfOwn() int {
	w.asking.Lock()
	defer w.asking.Unlock()
	due, ok := w.asked.oldest()
	if !ok || due.own == nil {
		return 0
	}
	return max(leaseAnswer, due.own.most)
}

// answerOwn hands the answer to a request of our own to whoever asked.
func (w *wire) answerOwn(due question, reply []byte) {
	w.session.sawZxid(int64(binary.BigEndian.Uint64(reply[4:])))
	believed := w.session.compare(due, reply)
	switch code := int32(binary.BigEndian.Uint32(reply[12:])); {
	case !believed:
		due.batch.take(due.own, nil, zk.ErrConnectionClosed)
	case code != 0:
		due.batch.take(due.own, nil, libraryError(code))
	default:
		due.batch.take(due.own, bytes.Clone(reply[replyHead:]), nil)
	}
}

// abandon tells everybody whose answer cannot come any more so.
func (w *wire) abandon() {
	w.asking.Lock()
	lost := w.asked
	w.over, w.asked = true, questions{}
	w.asking.Unlock()
	for _, each := range lost.all() {
		each.lose()
	}
}

// lose tells whoever asked, if it is a request of our own, that no answer will come.
func (q question) lose() {
	if q.own != nil {
		q.batch.take(q.own, nil, zk.ErrConnectionClosed)
	}
}

// sawZxid notes the newest state that the session has seen by our own requests, of which the library does not know.
func (s *Session) sawZxid(zxid int64) {
	for {
		newest := s.newestZxid.Load()
		if zxid <= newest || s.newestZxid.CompareAndSwap(newest, zxid) {
			return
		}
	}
}

// patchZxid has a handshake tell the newest state that the session has seen: a server that lags behind it refuses.
func (s *Session) patchZxid(handshake []byte) {
	if zxid := s.newestZxid.Load(); zxid > int64(binary.BigEndian.Uint64(handshake[connectZxid:])) {
		binary.BigEndian.PutUint64(handshake[connectZxid:], uint64(zxid))
	}
}

// askOwn makes requests of our own, as the library makes its own: it fails if there is no connection. One that fails does not keep those
// behind it from being carried out.
func (s *Session) askOwn(requests ...ownRequest) ([]ownRequest, error) {
	s.mu.Lock()
	w, connected := s.wire, s.connected
	s.mu.Unlock()
	answered := make(chan struct{})
	b := newBatch(func(*batch) { close(answered) }, requests...)
	if !connected || !w.send(b) {
		return nil, zk.ErrConnectionClosed
	}
	select {
	case <-answered:
		return b.requests, b.requests[0].err
	case <-s.over.Done(): // whose connection may take its time to close
		return nil, zk.ErrConnectionClosed
	}
}

// askAtOnce makes requests of our own without waiting for anything, and says whether it could. answered is called when they have their answers,
// also if the connection ends, and asks for the outcome.
func (s *Session) askAtOnce(ctx context.Context, operation string, answered func(*batch), requests ...ownRequest) bool {
	s.mu.Lock()
	w, generation, connected := s.wire, s.generation, s.connected && s.err == nil
	s.mu.Unlock()
	b := newBatch(answered, requests...)
	b.asked = s.begun(ctx, operation, generation)
	return connected && w.sendAtOnce(b, mostLinedUp)
}

// createPlace makes an ephemeral sequential child of dir and lists dir behind it, unless many names were there lately. Behind that it reads the
// node beside.
func (s *Session) createPlace(dir, prefix string, data []byte, beside []string) (made recipes.Enqueued, err error) {
	requests, err := s.askOwn(s.placeRequests(dir, prefix, data, beside)...)
	if err != nil {
		return made, err
	}
	return placeIn(requests, dir, prefix)
}

func (s *Session) placeRequests(dir, prefix string, data []byte, beside []string) []ownRequest {
	body := s.appendPlace(make([]byte, 0, 136+2*len(dir)+len(prefix)+len(data)), dir, prefix, data)
	requests := append(make([]ownRequest, 0, 3), ownRequest{kind: opCreate2, body: body})
	if s.client.crowded.check(dir) == nil {
		list := append(appendText(body, dir), 0)[len(body):]
		requests = append(requests, ownRequest{kind: opGetChildren2, path: dir, body: list})
		for _, node := range beside {
			requests = append(requests, ownRequest{kind: opGetData, body: append(appendText(nil, node), 0)})
		}
	}
	return requests
}

// placeIn is the place that was made in dir, whose name begins like this.
func placeIn(requests []ownRequest, dir, prefix string) (made recipes.Enqueued, err error) {
	created := jute.NewDecoder(requests[0].answer)
	made.Path, made.Czxid = created.Text(), created.Int64()
	in, name := path.Split(made.Path)
	made.Name = name
	if created.Failed() || strings.TrimSuffix(in, "/") != dir || !strings.HasPrefix(name, prefix) {
		return recipes.Enqueued{}, zk.ErrShortBuffer // as the library has it: the outcome is not known
	}
	if len(requests) > 1 && requests[1].err == nil {
		list := jute.NewDecoder(requests[1].answer)
		names := list.Texts()
		stat := statIn(list)
		if !list.Failed() {
			made.Queue, made.HasData = names, stat.DataLength > 0
		}
	}
	if len(requests) > 2 && requests[2].err == nil {
		made.Beside = jute.NewDecoder(requests[2].answer).Bytes()
	}
	return made, nil
}

// appendPlace appends what makes an ephemeral sequential child of dir.
func (s *Session) appendPlace(b []byte, dir, prefix string, data []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(dir)+1+len(prefix)))
	b = append(append(append(b, dir...), '/'), prefix...)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
	b = appendACL(b, s.client.config.acl)
	return binary.BigEndian.AppendUint32(b, zk.FlagEphemeralSequential)
}

// createPlaces makes a node at each of the ends in one transaction; what the names begin with is unique.
func (s *Session) createPlaces(ends []recipes.QueueEnd, unique string, data []byte) (made []recipes.Enqueued, err error) {
	operations := make([]operation, len(ends))
	for i, end := range ends {
		operations[i] = operation{
			kind: opCreate, path: end.Dir + "/" + unique + end.Marker, data: data, acl: s.client.config.acl, number: zk.FlagEphemeralSequential,
		}
	}
	results, err := s.multi(operations...)
	if err != nil {
		return nil, err
	}
	for i, each := range results {
		if !strings.HasPrefix(each.path, operations[i].path) {
			return nil, zk.ErrShortBuffer // as the library has it: the outcome is not known
		}
		made = append(made, recipes.Enqueued{Path: each.path, Name: path.Base(each.path)})
	}
	return made, nil
}

// deleteNode deletes a node if its data are of this version.
func (s *Session) deleteNode(node string, version int32) error {
	_, err := s.askOwn(operation{kind: opDelete, path: node, number: version}.request())
	return err
}

const anyVersion = -1

func appendACL(b []byte, acl []zk.ACL) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(acl)))
	for _, entry := range acl {
		b = binary.BigEndian.AppendUint32(b, uint32(entry.Perms))
		b = appendText(b, entry.Scheme)
		b = appendText(b, entry.ID)
	}
	return b
}

// libraryErrors are the library's names for the codes of KeeperException that mean something here; see translations and noAnswers.
var libraryErrors = map[int32]error{
	-100: zk.ErrAPIError,
	-101: zk.ErrNoNode,
	-102: zk.ErrNoAuth,
	-103: zk.ErrBadVersion,
	-108: zk.ErrNoChildrenForEphemerals,
	-110: zk.ErrNodeExists,
	-111: zk.ErrNotEmpty,
	-112: zk.ErrSessionExpired,
	-114: zk.ErrInvalidACL,
	-116: zk.ErrClosing,

	codeMoved:        zk.ErrSessionMoved,
	codeAuthFailed:   zk.ErrAuthFailed,
	codeNothing:      zk.ErrNothing,
	codeRefused:      zk.ErrReconfigDisabled,
	codeLocalSession: recipes.ErrLocalSession,
}

func libraryError(code int32) error {
	if err, ok := libraryErrors[code]; ok {
		return err
	}
	return fmt.Errorf("error %d", code)
}

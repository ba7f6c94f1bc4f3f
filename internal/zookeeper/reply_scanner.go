package zookeeper

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// errMalformed ends a connection over which something has come that no server sends. The library believes every length it
// reads: it would ask for gigabytes, or end the process in a goroutine of its own.
var errMalformed = errors.New("no answer of a ZooKeeper server")

// Kinds of requests, as ZooDefs.OpCode numbers them.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opRemoveWatches   = 18
	opCreateContainer = 19
	opGetEphemerals   = 103
	opClose           = -11
	opError           = -1 // in the place of an operation of a multi that failed
)

const (
	eventXid = -1

	codeThrottled    = -127 // as KeeperException numbers them
	codeQuota        = -125
	codeAuthDemanded = -124
	codeLocalSession = -120
	codeNotReadOnly  = -119
	codeMoved        = -118
	codeNothing      = -117
	codeAuthFailed   = -115

	statBytes        = 68
	passwordBytes    = 16
	shortestGreeting = replyHead + 4 + passwordBytes
	longestGreeting  = shortestGreeting + 1 // from servers that know of read-only ones
)

// checkLength refuses a length that no reply has, before anybody waits for as many bytes.
func (w *wire) checkLength(length int) error {
	least, most := replyHead, leaseBuffer
	switch {
	case w.replies == 0:
		least, most = shortestGreeting, longestGreeting
	case w.session.brief:
		most = readerBuffer
	case w.awaitsOwn(opGetChildren2):
		most = mostQueue
	case w.awaitsOwn(opGetEphemerals):
		most = mostEphemerals * w.session.client.config.EphemeralBytes
	default:
		most = max(most, w.mostOfOwn())
	}
	if length < least || length > most {
		return fmt.Errorf("%w: %d bytes", errMalformed, length)
	}
	return nil
}

// check refuses a reply that is not what its request asks for, which it returns.
func (w *wire) check(reply []byte) (due question, err error) {
	if w.replies == 0 {
		return noQuestion, checkGreeting(reply)
	}
	xid, code := int32(binary.BigEndian.Uint32(reply)), binary.BigEndian.Uint32(reply[12:])
	due = w.answered(xid)
	if xid >= 0 && due.xid != xid {
		return due, fmt.Errorf("%w: to request %d, where request %d is to be answered", errMalformed, xid, due.xid)
	}
	if due.kind == opClose {
		w.session.heardOf.Store(true)
	}
	body := replyScanner{rest: reply[replyHead:]}
	switch {
	case xid == eventXid:
		body.skip(8) // kind and state
		body.bytes()
	case xid >= 0 && code == 0:
		body.reply(due.kind)
	}
	if xid >= 0 {
		w.session.client.heardDemand(int32(code) == codeAuthDemanded)
	}
	nameable(reply[12:])
	if body.bad {
		return due, fmt.Errorf("%w: %d bytes to a request of kind %d", errMalformed, len(reply), due.kind)
	}
	return due, nil
}

// stand are the codes that stand for those that the library has no name for. It has one for each of these, and no server sends it in answer to a
// request of ours, except that of a session which has moved: that one means the same, a server that cannot do it.
var stand = map[int32]int32{
	codeThrottled:    codeNothing,
	codeQuota:        codeRefused,
	codeAuthDemanded: codeAuthFailed,
	codeNotReadOnly:  codeMoved,
}

// nameable replaces a code that the library has no name for.
func nameable(code []byte) {
	if named, is := stand[int32(binary.BigEndian.Uint32(code))]; is {
		binary.BigEndian.PutUint32(code, uint32(named))
	}
}

// heardDemand takes in whether the answer to a request was that the ensemble demands authentication.
func (c *Client) heardDemand(demanded bool) {
	if c.demandsAuth.Load() != demanded {
		c.demandsAuth.Store(demanded)
	}
}

// heardDenial takes in whether the ensemble has denied the reader the configured directories.
func (c *Client) heardDenial(denied bool) {
	if c.denied.Swap(denied) != denied && denied {
		c.config.Log.Warn("the ensemble's access control denies the sidecar its directories", zap.Strings("directories", c.config.Directories))
	}
}

// demanded is ErrAuthDemanded instead of an error that says that the ensemble does not answer, if it demands authentication before it does,
// or says why the sidecar could not authenticate. It is ErrDenied if the ensemble denies what the reader begins with.
func (c *Client) demanded(err error) error {
	if why := c.whyUnauthenticated(); why != nil && errors.Is(err, recipes.ErrUnreachable) {
		return why
	}
	if errors.Is(err, recipes.ErrUnreachable) && c.demandsAuth.Load() {
		return recipes.ErrAuthDemanded
	}
	if errors.Is(err, recipes.ErrUnreachable) && c.denied.Load() {
		return recipes.ErrDenied
	}
	return err
}

// checkGreeting wants a password of the usual length and, with a session, a time that can be kept.
func checkGreeting(reply []byte) error {
	timeout, session := int32(binary.BigEndian.Uint32(reply[4:])), binary.BigEndian.Uint64(reply[8:])
	if binary.BigEndian.Uint32(reply[replyHead:]) != passwordBytes || session != 0 && timeout <= 0 {
		return fmt.Errorf("%w: %x", errMalformed, reply[:replyHead])
	}
	return nil
}

// ask lines up a frame of the library's, and notes what it asks. It returns false if the frame is not to be written.
func (w *wire) ask(frame []byte) bool {
	w.asking.Lock()
	defer w.asking.Unlock()
	if w.isNeedless(frame) {
		return false
	}
	w.lined = append(w.lined, frame...)
	if len(frame) < frameLength+8 {
		return true
	}
	sent := question{xid: int32(binary.BigEndian.Uint32(frame[frameLength:])), kind: int32(binary.BigEndian.Uint32(frame[frameLength+4:]))}
	if sent.xid < 0 {
		return true
	}
	if sent.kind == opGetChildren2 && w.session.brief {
		sent.path = pathIn(frame[frameLength+8:])
	}
	w.asked.add(sent)
	return true
}

// answered is the question whose answer is due, if one with this number has come.
func (w *wire) answered(xid int32) question {
	w.asking.Lock()
	defer w.asking.Unlock()
	due, ok := w.asked.oldest()
	if xid < 0 || !ok {
		return noQuestion
	}
	w.asked.drop()
	if due.own != nil {
		w.unanswered -= due.own.size()
	}
	return due
}

// A replyScanner goes over a reply without taking anything from it. The first mistake makes it bad for good.
type replyScanner struct {
	rest []byte
	bad  bool
}

func (s *replyScanner) reply(kind int32) {
	switch kind {
	case opCreate, opCreateContainer:
		s.bytes()
	case opExists, opSetData:
		s.skip(statBytes)
	case opGetData, opCreate2:
		s.bytes()
		s.skip(statBytes)
	case opGetChildren2:
		s.list(s.bytes)
		s.skip(statBytes)
	case opGetEphemerals:
		s.list(s.bytes)
	case opGetACL:
		s.list(func() { s.skip(4); s.bytes(); s.bytes() })
		s.skip(statBytes)
	case opMulti:
		s.results()
	}
}

// results goes over the results of a multi, up to the mark that there are no more.
func (s *replyScanner) results() {
	for !s.bad {
		kind, done := int32(s.number()), s.flag()
		s.skip(4)
		switch {
		case done:
			return
		case kind == opCreate:
			s.bytes()
		case kind == opSetData:
			s.skip(statBytes)
		case kind == opError:
			if from := s.rest; len(from) >= 4 {
				nameable(from)
			}
			s.skip(4)
		case kind != opDelete && kind != opCheck:
			s.bad = true
		}
	}
}

func (s *replyScanner) skip(n int) {
	if s.bad || n < 0 || n > len(s.rest) {
		s.bad = true
		return
	}
	s.rest = s.rest[n:]
}

func (s *replyScanner) number() int {
	from := s.rest
	if s.skip(4); s.bad {
		return 0
	}
	return int(int32(binary.BigEndian.Uint32(from)))
}

func (s *replyScanner) flag() bool {
	from := s.rest
	s.skip(1)
	return !s.bad && from[0] != 0
}

// bytes are also a string. Only data may be missing, which is a length of −1; for the library a string is then too long.
func (s *replyScanner) bytes() {
	if n := s.number(); n != -1 {
		s.skip(n)
	}
}

// list goes over so many entries, each of which has four bytes at least.
func (s *replyScanner) list(entry func()) {
	count := s.number()
	if count < 0 || count > len(s.rest)/4 {
		s.bad = true
	}
	for range count {
		if entry(); s.bad {
			return
		}
	}
}

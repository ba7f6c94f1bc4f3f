package zookeeper

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Offsets in the frames of ZooKeeper's protocol, their length included.
const (
	frameLength      = 4
	connectZxid      = 8  // in a ConnectRequest: length, protocol version
	connectSessionID = 20 // in a ConnectRequest: length, protocol version, last zxid, timeout, session id
	replyHead        = 16 // of a reply without its length: xid, zxid, error; of a ConnectResponse: version, timeout, session
	authXid          = -4
	pingXid          = -2
)

var errFenced = errors.New("session is fenced")

// Bytes read ahead. The library reads each frame with two calls; this makes one system call of them.
const (
	leaseAhead  = 512 // several of a lease's replies
	readerAhead = 16 << 10
)

// A wire is one TCP connection of one session as the library sees it. It refuses to write once the session is fenced,
// refuses a handshake for another session, authenticates behind the handshake, hands each reply over as a whole once it
// has been looked at, and cuts the library's deadlines down.
type wire struct {
	net.Conn
	session *Session
	peer    string // where the connection ends
	release func() // gives the handshake's place at the gate back

	input   *bufio.Reader
	frame   []byte // of the newest reply
	ahead   []byte // the part of it that the library has not read yet
	skipped int    // bytes of it that nobody is to read

	handshake exchange // sent is set by the first Write, answered by the first reply

	replies  int
	welcomed atomic.Bool // the handshake has been answered

	writing chan struct{} // held while something is written
	called  atomic.Bool   // somebody is about to write what has lined up
	writes  deadline      // of what is written
	room    []byte        // for what lines up while that is written
	reads   deadline      // of answers to requests of our own

	asking     sync.Mutex
	asked      questions // under way
	unanswered int       // bytes of these, of those that are our own
	lined      []byte    // what is to be written next, in the order in which it was asked
	requested  instant   // when the newest request but pings lined up
	over       bool      // nothing is answered any more

	closing sync.Once
}

// Write sends one whole frame: the library writes each with one call. A request that cannot be written closes the connection, and
// is lost like one that is not answered: the library, told of the failure, answers a request that was made while it is being
// closed three times, where there is room for two, and waits for ever.
func (w *wire) Write(frame []byte) (int, error) {
	if w.handshake.sent == 0 {
		return w.writeHandshake(frame)
	}
	w.writing <- struct{}{}
	if w.ask(frame) {
		w.writeLined(math.MaxInt)
	}
	w.yield()
	return len(frame), nil
}

// isNeedless says whether the frame is a ping behind a request that was written lately, whose answer says as much. The library pings every
// third of the timeout, and gives up a connection from which it has read nothing for two thirds: with half an interval between request and
// ping, an answer comes within half of the timeout. The library expects no answer to a ping. The lock is held.
func (w *wire) isNeedless(frame []byte) bool {
	now := w.session.now()
	if len(frame) < frameLength+4 || int32(binary.BigEndian.Uint32(frame[frameLength:])) != pingXid {
		w.requested = now
		return false
	}
	return w.requested != 0 && now.since(w.requested) < w.session.timeout()/6
}

// writeHandshake writes the handshake, and behind it who we are.
func (w *wire) writeHandshake(frame []byte) (int, error) {
	if w.session.fenced.Load() {
		return 0, errFenced
	}
	if len(frame) >= connectSessionID+8 {
		frame = w.session.reattaching(frame)
		if err := w.session.mayConnect(int64(binary.BigEndian.Uint64(frame[connectSessionID:]))); err != nil {
			return 0, err
		}
	}
	written := slices.Concat(frame, w.session.introducing())
	if len(frame) >= connectSessionID {
		w.session.patchZxid(written)
	}
	w.handshake.sent = w.session.now()
	if _, err := w.Conn.Write(written); err != nil {
		return 0, err
	}
	return len(frame), nil
}

func newWire(conn net.Conn, s *Session, release func()) *wire {
	ahead := leaseAhead
	if s.brief {
		ahead = readerAhead
	}
	return &wire{
		Conn: conn, session: s, peer: conn.RemoteAddr().String(), release: release, input: bufio.NewReaderSize(conn, ahead),
		writing: make(chan struct{}, 1),
	}
}

// Read gives the library what it has not read yet of a reply, and waits for the next one if there is nothing.
func (w *wire) Read(buffer []byte) (int, error) {
	if len(w.ahead) == 0 {
		if err := w.next(); err != nil {
			w.abandon()
			if w.replies == 0 && !errors.Is(err, errMalformed) {
				w.session.handshakeRefused(w)
				w.session.unasked()
			}
			return 0, err
		}
	}
	n := copy(buffer, w.ahead)
	w.ahead = w.ahead[n:]
	return n, nil
}

// next waits for a reply to the library and looks at it. Answers to requests of our own that come before go to whoever asked; each begins
// anew, within a sixteenth of the timeout, how long the library waits, as one to itself would. What is malformed is not handed over.
func (w *wire) next() error {
	for {
		if own, err := w.nextReply(); !own || err != nil {
			return err
		}
		if until, move := w.reads.move(w.session.timeout()); move {
			_ = w.Conn.SetReadDeadline(until) // fails only once the connection is closed
		}
	}
}

// nextReply waits for a reply, looks at it, and hands it to the library or, if it is our own, to whoever asked.
func (w *wire) nextReply() (own bool, err error) {
	if err := w.readOver(); err != nil {
		return false, err
	}
	head, err := w.input.Peek(frameLength)
	if err != nil {
		return false, err
	}
	length := int(binary.BigEndian.Uint32(head))
	if w.isTooLong(length) {
		return w.skip(length)
	}
	if err := w.checkLength(length); err != nil {
		return false, w.refuse(err)
	}
	if size := frameLength + length; size > cap(w.frame) || cap(w.frame) > readerAhead {
		w.frame = make([]byte, size)
	}
	w.frame = w.frame[:frameLength+length]
	if _, err := io.ReadFull(w.input, w.frame); err != nil {
		return false, err
	}
	due, err := w.check(w.frame[frameLength:])
	if err != nil {
		due.lose()
		return false, w.refuse(err)
	}
	if due.own != nil {
		w.answerOwn(due, w.frame[frameLength:])
		return true, nil
	}
	w.reply(w.frame[frameLength:])
	w.ahead = w.frame
	return false, nil
}

// refuse ends the connection on which an error was made. After its end answers come to what nobody asks any more.
func (w *wire) refuse(err error) error {
	w.asking.Lock()
	over := w.over
	w.asking.Unlock()
	if !over {
		w.session.log.Warn("malformed answer from the ensemble", zap.String("server", w.peer), zap.Error(err))
	}
	w.drop()
	return err
}

// reply takes the head of a reply that was checked.
func (w *wire) reply(head []byte) {
	w.replies++
	if w.replies == 1 {
		w.handshake.answered = w.session.now()
		w.welcomed.Store(true)
		w.release()
		timeout := time.Duration(int32(binary.BigEndian.Uint32(head[4:]))) * time.Millisecond
		w.session.remember(head[replyHead+4:]) //nolint:gosec // the first reply has been checked to be a greeting
		w.session.connectAnswered(w, int64(binary.BigEndian.Uint64(head[8:])), timeout)
		return
	}
	xid, code := int32(binary.BigEndian.Uint32(head)), int32(binary.BigEndian.Uint32(head[12:]))
	if xid == authXid && code != 0 {
		w.session.lose(errAuthFailed)
	}
}

func (w *wire) Close() error {
	err := net.ErrClosed
	w.closing.Do(func() {
		w.release()
		err = w.Conn.Close()
		w.abandon()
	})
	return err
}

// drop closes the connection under the library's feet: its next read or write fails. It takes no leave of a server over TLS: one that reads
// nothing would keep it waiting.
func (w *wire) drop() {
	conn := w.Conn
	if secured, is := conn.(*tls.Conn); is {
		conn = secured.NetConn()
	}
	conn.Close()
}

// A deadline is that of requests of our own, or of answers to them: two thirds of the session's timeout.
type deadline struct{ moved time.Time }

// move says until when the connection may take now, if that is worth to be set: once in a sixteenth of the timeout.
func (d *deadline) move(timeout time.Duration) (until time.Time, worth bool) {
	now := time.Now()
	if now.Sub(d.moved) < timeout/16 {
		return until, false
	}
	d.moved = now
	return now.Add(timeout * 2 / 3), true
}

// SetReadDeadline shortens the library's deadlines, which are ten times too long for a handshake, and leaves the last one
// standing where the library would have none.
func (w *wire) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	return w.Conn.SetReadDeadline(w.sooner(t))
}

// SetWriteDeadline is to writes what SetReadDeadline is to reads.
func (w *wire) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	return w.Conn.SetWriteDeadline(w.sooner(t))
}

func (w *wire) sooner(t time.Time) time.Time {
	limit := w.session.serverTimeout()
	if w.welcomed.Load() {
		limit = w.session.timeout() * 2 / 3
	}
	if soon := time.Now().Add(limit); soon.Before(t) {
		return soon
	}
	return t
}

// authFrame is the request that authenticates a connection, as the library would write it.
func authFrame(scheme string, secret []byte) []byte {
	const opAuth = 100
	b := binary.BigEndian.AppendUint32(nil, 0)
	xid := int32(authXid)
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint32(b, opAuth)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(scheme)))
	b = append(b, scheme...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(secret)))
	b = append(b, secret...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-frameLength))
	return b
}

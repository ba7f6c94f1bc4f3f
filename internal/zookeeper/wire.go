package zookeeper

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Offsets in the frames of ZooKeeper's protocol, their length included.
const (
	frameLength      = 4
	connectSessionID = 20 // in a ConnectRequest: length, protocol version, last zxid, timeout, session id
	replyHead        = 16 // of a reply without its length: xid, zxid, error; of a ConnectResponse: version, timeout, session
	authXid          = -4
)

var errFenced = errors.New("session is fenced")

// Bytes read ahead. The library reads each frame with two calls; this makes one system call of them.
const (
	leaseAhead  = 512 // several of a lease's replies
	readerAhead = 16 << 10
)

// A wire is one TCP connection of one session as the library sees it. It refuses to write once the session is fenced,
// refuses a handshake for another session, authenticates behind the handshake, looks at the head of each reply, and
// cuts the library's deadlines down.
type wire struct {
	net.Conn
	session *Session
	release func() // gives the handshake's place at the gate back

	room  []byte // for reading ahead
	ahead []byte // the part of room that the library has not read yet

	handshake exchange // sent is set by the first Write, answered by the first reply

	scan      [frameLength + replyHead]byte
	scanned   int // bytes of scan that are filled
	remaining int // bytes of the frame behind scan that are still to come
	replies   int
	welcomed  atomic.Bool // the handshake has been answered

	closing sync.Once
}

// Write sends one whole frame: the library writes each with one call. A request that cannot be written closes the connection, and
// is lost like one that is not answered: the library, told of the failure, answers a request that was made while it is being
// closed three times, where there is room for two, and waits for ever.
func (w *wire) Write(frame []byte) (int, error) {
	if w.handshake.sent == 0 {
		return w.greet(frame)
	}
	if w.session.fenced.Load() {
		w.drop()
	} else if _, err := w.Conn.Write(frame); err != nil {
		w.drop()
	}
	return len(frame), nil
}

// greet writes the handshake, and behind it who we are.
func (w *wire) greet(frame []byte) (int, error) {
	if w.session.fenced.Load() {
		return 0, errFenced
	}
	if len(frame) >= connectSessionID+8 {
		if err := w.session.mayConnect(int64(binary.BigEndian.Uint64(frame[connectSessionID:]))); err != nil {
			return 0, err
		}
	}
	w.handshake.sent = w.session.now()
	if _, err := w.Conn.Write(append(slices.Clip(frame), w.session.client.authFrame...)); err != nil {
		return 0, err
	}
	return len(frame), nil
}

func newWire(conn net.Conn, s *Session, release func()) *wire {
	ahead := leaseAhead
	if s.brief {
		ahead = readerAhead
	}
	return &wire{Conn: conn, session: s, release: release, room: make([]byte, ahead)}
}

func (w *wire) Read(buffer []byte) (int, error) {
	if len(w.ahead) == 0 && len(buffer) >= len(w.room) {
		return w.receive(buffer)
	}
	if len(w.ahead) == 0 {
		n, err := w.receive(w.room)
		if n == 0 {
			return 0, err
		}
		w.ahead = w.room[:n] // an error comes again with the next read
	}
	n := copy(buffer, w.ahead)
	w.ahead = w.ahead[n:]
	return n, nil
}

// receive reads from the connection and looks at what has come.
func (w *wire) receive(buffer []byte) (int, error) {
	n, err := w.Conn.Read(buffer)
	w.look(buffer[:n])
	if err != nil && w.replies == 0 {
		w.session.handshakeRefused(w)
	}
	return n, err
}

// look walks over what was read and reports the head of each frame.
func (w *wire) look(read []byte) {
	for len(read) > 0 {
		if w.remaining > 0 {
			skip := min(w.remaining, len(read))
			w.remaining -= skip
			read = read[skip:]
			continue
		}
		n := copy(w.scan[w.scanned:], read)
		w.scanned += n
		read = read[n:]
		if w.scanned < len(w.scan) {
			return
		}
		length := int(binary.BigEndian.Uint32(w.scan[:]))
		w.remaining = max(0, length-replyHead)
		w.scanned = 0
		w.reply(w.scan[frameLength:])
	}
}

// reply takes the head of a reply. Every frame a server sends is at least that long.
func (w *wire) reply(head []byte) {
	w.replies++
	if w.replies == 1 {
		w.handshake.answered = w.session.now()
		w.welcomed.Store(true)
		w.release()
		timeout := time.Duration(int32(binary.BigEndian.Uint32(head[4:]))) * time.Millisecond
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
	})
	return err
}

// drop closes the connection under the library's feet: its next read or write fails.
func (w *wire) drop() { w.Conn.Close() }

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
	limit := w.session.patience()
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

package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

const (
	lateClosingsAtOnce = 8 // beside the handshakes of sessions that live

	lateClosingDial = time.Second / 2 // for a connection
	lateClosingTime = time.Second     // for the answers

	closeXid = 1

	expiredAlready = -112 // as KeeperException numbers it
)

// closeLost has the ensemble close the session if it has not heard of its end: because it could not be proved any more, or was closed
// without contact. What it owned would else stand until it expires, which packets that were under way may put off. See the package
// comment for when and how. It does not wait.
func (s *Session) closeLost() {
	trace.Tell(trace.Step{Kind: trace.Buried, Session: s.ID()})
	s.mu.Lock()
	unheard := errors.Is(s.err, errUnproved) || errors.Is(s.err, errUnseen) || errors.Is(s.err, errClosed) && !s.heardOf.Load()
	late := unheard && s.id != 0 && !s.brief && !s.closedLate
	s.closedLate = s.closedLate || late
	s.mu.Unlock()
	if late {
		s.client.work.Go(s.remains().closeLate)
	}
}

// Remains are what it takes to close a session at the ensemble once the session itself has ended here.
type remains struct {
	client   *Client
	log      *zap.Logger
	id       int64
	password [passwordBytes]byte
	auth     []byte
	timeout  time.Duration
	expiry   instant // the first at which the ensemble could have expired it by itself; past if that need not be waited for
}

func (s *Session) remains() *remains {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := &remains{client: s.client, log: s.log, id: s.id, password: s.password, auth: s.auth, timeout: s.negotiated}
	if !errors.Is(s.err, errClosed) {
		of.expiry = s.proof.deadline.add(s.proof.reserve()) // a timeout after what proved it last
	}
	return of
}

// closeLate tries until the session is closed or has expired by itself, at one server after the other. A server that takes the frames and
// does not answer may have renewed the session in vain: it is not asked again.
func (r *remains) closeLate() {
	ctx, cancel := context.WithTimeout(r.client.life, r.timeout+2*r.client.config.TickTime)
	defer cancel()
	pause(ctx, r.expiry.since(instant(r.client.config.Clock())))
	servers := r.client.serversFrom(r.client.reader.address())
	for len(servers) > 0 && ctx.Err() == nil {
		server := servers[0]
		servers = servers[1:]
		taken, err := r.closeLateAt(ctx, server)
		if err == nil {
			r.log.Debug("session closed late", zap.String("server", server))
			return
		}
		if !taken {
			servers = append(servers, server)
		}
		pause(ctx, r.client.upTo(200*time.Millisecond)+time.Millisecond)
	}
}

// A closing is how a session is closed at a server.
type closing struct {
	dial, answers time.Duration // how long each may take
	newest        int64         // the state that the server must have: an older one may not know the session
}

var closingLate = closing{dial: lateClosingDial, answers: lateClosingTime}

// closeLateAt is closeAt, of few sessions at once.
func (r *remains) closeLateAt(ctx context.Context, server string) (taken bool, err error) {
	leave, err := r.client.lateClosings.enter(ctx.Done())
	if err != nil {
		return false, err
	}
	defer leave()
	return r.closeAt(ctx, server, closingLate)
}

// closeFor closes the session at one server after the other until it is closed, or the other session has ended. What a server has of it
// that stands still is refused from then on. Each server gets the time that sessions give it.
func (r *remains) closeFor(ctx context.Context, other *Session) error {
	trace.Tell(trace.Step{Kind: trace.Replaced, Session: r.id})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.client.work.Go(func() {
		select {
		case <-other.Done():
			cancel(other.Err())
		case <-ctx.Done():
		}
	})
	how := closing{dial: min(time.Second, other.serverTimeout()), answers: other.serverTimeout(), newest: r.client.shown.zxid.Load()}
	servers := r.client.serversFrom(other.server())
	for failures := 0; ctx.Err() == nil; failures++ {
		_, err := r.closeAt(ctx, servers[failures%len(servers)], how)
		if err == nil {
			return nil
		}
		r.log.Debug("the reader's old session is not closed yet", zap.Error(err))
		pause(ctx, r.client.retryPause(failures))
	}
	return context.Cause(ctx)
}

// closeAt comes back to the session and closes it, at one server and in one write, so that no server gets the one without the other. It
// says whether the server may have heeded a part of it; one that is without a leader hangs up at once. No error means that there is
// no such session any more.
func (r *remains) closeAt(ctx context.Context, server string, how closing) (taken bool, err error) {
	if r.client.silentServers.avoids(server) {
		return false, errSilent
	}
	defer func() {
		if silent := timedOut(err) && ctx.Err() == nil; silent || err == nil {
			r.client.silentServers.note(server, !silent)
		}
	}()
	dialing, cancel := context.WithTimeout(ctx, how.dial)
	defer cancel()
	if r.client.config.SASL != nil {
		if err := r.client.prepareSASL(dialing, server); err != nil {
			return false, err
		}
	}
	conn, err := r.client.connect(dialing, server)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(how.answers))
	if r.client.config.SASL != nil {
		err = r.closeAuthenticated(conn, server, how.newest)
		return !errors.Is(err, io.EOF), err
	}
	if _, err := conn.Write(append(r.closeHandshake(how.newest), closeFrame()...)); err != nil {
		return true, err
	}
	err = awaitCloseReply(conn)
	return !errors.Is(err, io.EOF), err
}

func timedOut(err error) bool {
	late, is := errors.AsType[net.Error](err)
	return is && late.Timeout()
}

// closeHandshake is a handshake for the session, and who we are. It asks for the shortest timeout there is: if only the handshake is heeded,
// the session is to last no longer for it than it must.
func (r *remains) closeHandshake(newest int64) []byte {
	b := handshakeFrame(r.id, 0, r.password[:])
	binary.BigEndian.PutUint64(b[connectZxid:], uint64(newest))
	return append(b, r.auth...)
}

// closeAuthenticated closes the session at a server that demands an exchange of packets between the handshake and the request.
func (r *remains) closeAuthenticated(conn net.Conn, server string, newest int64) error {
	if _, err := conn.Write(r.closeHandshake(newest)); err != nil {
		return err
	}
	session, _, err := readGreeting(conn)
	if err != nil || session == 0 { // it has expired
		return err
	}
	if err := exchangeSASL(conn, conn, r.client.config.SASL, server); err != nil {
		return err
	}
	if _, err := conn.Write(closeFrame()); err != nil {
		return err
	}
	return awaitClosed(conn)
}

// handshakeFrame asks for a session, or for a new one if the id is 0.
func handshakeFrame(id int64, timeout time.Duration, password []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, connectSessionID+8+4+passwordBytes-frameLength)
	b = append(b, make([]byte, 4+8)...) // version, newest transaction seen
	b = binary.BigEndian.AppendUint32(b, uint32(timeout.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	b = binary.BigEndian.AppendUint32(b, passwordBytes)
	return append(b, password...)
}

// closeFrame asks for the end of the connection's session.
func closeFrame() []byte {
	b := binary.BigEndian.AppendUint32(nil, 8)
	b = binary.BigEndian.AppendUint32(b, closeXid)
	kind := int32(opClose)
	return binary.BigEndian.AppendUint32(b, uint32(kind))
}

// awaitCloseReply reads what a server answers to closeFrames.
func awaitCloseReply(conn net.Conn) error {
	session, _, err := readGreeting(conn)
	if err != nil || session == 0 { // it has expired
		return err
	}
	return awaitClosed(conn)
}

// readGreeting reads the answer to a handshake: which session the server knows by it, 0 for none, and its password.
func readGreeting(conn net.Conn) (session int64, password []byte, err error) {
	greeting, err := readReply(conn)
	if err != nil {
		return 0, nil, err
	}
	if len(greeting) < shortestGreeting {
		return 0, nil, fmt.Errorf("%w: %d bytes", errMalformed, len(greeting))
	}
	if err := checkGreeting(greeting); err != nil {
		return 0, nil, err
	}
	return int64(binary.BigEndian.Uint64(greeting[8:])), greeting[shortestGreeting-passwordBytes : shortestGreeting], nil
}

// awaitClosed reads the answer to closeFrame.
func awaitClosed(conn net.Conn) error {
	for {
		reply, err := readReply(conn)
		if err != nil {
			return err
		}
		if binary.BigEndian.Uint32(reply) != closeXid {
			continue
		}
		if code := int32(binary.BigEndian.Uint32(reply[12:])); code != 0 && code != expiredAlready {
			return fmt.Errorf("%w: code %d", errRefused, code)
		}
		return nil
	}
}

// readReply reads one reply, without its length.
func readReply(conn io.Reader) ([]byte, error) {
	head := make([]byte, frameLength)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head)
	if length < replyHead || length > leaseAnswer {
		return nil, fmt.Errorf("%w: %d bytes", errMalformed, length)
	}
	reply := make([]byte, length)
	_, err := io.ReadFull(conn, reply)
	return reply, err
}

package caller

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

// An Ending is how a connection ended. The first finding stands.
//
// It is known before any stream's context ends: the transport (grpc-go v1.85, http2Server) cancels its streams only in
// Close, after conn.Close; its reader calls Close after Read has returned an error, and its keepalive calls Close on
// its own account. So what comes first, the reader's EOF or our Close, tells the two apart.
type Ending struct {
	number uint64
	state  atomic.Int32
	left   context.Context //nolint:containedctx // ends when the finding is that the peer has closed it
	leave  context.CancelFunc
}

var endings atomic.Uint64

func newEnding() *Ending {
	e := &Ending{number: endings.Add(1)}
	e.left, e.leave = context.WithCancel(context.Background())
	return e
}

// Number tells a connection from all others; 0 for none.
func (e *Ending) Number() uint64 {
	if e == nil {
		return 0
	}
	return e.number
}

// OutOfSight is a caller of whom nothing is known but that it may be there.
func OutOfSight() Caller { return Caller{Ending: newEnding()} }

// Left is closed when the peer has closed the connection.
func (e *Ending) Left() <-chan struct{} { return e.left.Done() }

// AfterLeft has f called in a goroutine of its own when the peer has closed the connection, unless stop is called before.
func (e *Ending) AfterLeft(f func()) (stop func() bool) { return context.AfterFunc(e.left, f) }

const (
	connectionOpen   int32 = iota
	connectionClosed       // by the peer's kernel, on this machine
	connectionLost         // given up without a word from the peer
)

func (e *Ending) close() {
	if e.state.CompareAndSwap(connectionOpen, connectionClosed) {
		e.leave()
	}
}

func (e *Ending) lose()        { e.state.CompareAndSwap(connectionOpen, connectionLost) }
func (e *Ending) silent() bool { return e.state.Load() == connectionLost }

// A rawConn is the socket, and notes how it ends. It is read at the pace that its slot allows.
type rawConn struct {
	net.Conn
	ending *Ending
	slot   Slot
	local  bool                               // whether the peer is on this machine
	misled func(peer net.Addr, trouble error) // told of the first bytes, if they are no caller's; nil after that
}

func (c *rawConn) Read(buffer []byte) (int, error) {
	c.slot.Pace()
	n, err := c.Conn.Read(buffer)
	c.classify(err)
	if n > 0 && c.misled != nil {
		if trouble := greeting(buffer[:n]); trouble != nil {
			c.misled(c.RemoteAddr(), trouble)
		}
		c.misled = nil
	}
	return n, err
}

// What connections begin with that are no callers'.
var (
	errBeginsWithTLS = errors.New("the caller speaks TLS, and this listener does not")
	errNoGRPC        = errors.New("the caller does not speak gRPC")
)

// greeting judges the first bytes of a connection without TLS.
func greeting(first []byte) error {
	const tlsHandshake, http2 = 0x16, "PRI "
	switch {
	case first[0] == tlsHandshake:
		return errBeginsWithTLS
	case string(first[:min(len(first), len(http2))]) != http2[:min(len(first), len(http2))]:
		return errNoGRPC
	}
	return nil
}

// Write looks for a local peer's FIN first: a peer that has gone answers what is written after it with a reset, and a Read that
// comes late then finds the socket as if it had timed out.
func (c *rawConn) Write(buffer []byte) (int, error) {
	if socket, ok := c.Conn.(*net.TCPConn); ok && c.local && holdsFor(socket, finReceived) {
		c.ending.close()
	}
	n, err := c.Conn.Write(buffer)
	if errors.Is(err, syscall.ECONNRESET) {
		c.classify(err)
	}
	return n, err
}

func (c *rawConn) Close() error {
	c.ending.lose()
	c.slot.Leave()
	return c.Conn.Close()
}

// classify decides what an error of the socket says about the peer. On this machine an end is the peer's kernel speaking. From elsewhere it may
// be a proxy or any box on the way that gave the connection up, while the peer knows nothing of it and still counts on what it was told.
func (c *rawConn) classify(err error) {
	switch {
	case err == nil, isTimeout(err):
	case c.local && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) && c.peerFinished()):
		c.ending.close()
	default:
		c.ending.lose()
	}
}

// isTimeout says whether the socket is as it was: a deadline of ours has passed. ETIMEDOUT calls itself a timeout too,
// and is the end of the connection.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() && !errors.Is(err, syscall.ETIMEDOUT)
}

// peerFinished says whether an end of file is the peer's own. A kernel reports a TCP connection's error once, to a Read or
// to a Write, and every Read after it sees an end of file: so a connection that timed out under a Write would
// look finished to the reader, but for the state it is in.
func (c *rawConn) peerFinished() bool {
	socket, ok := c.Conn.(*net.TCPConn)
	return !ok || holdsFor(socket, closedByPeer)
}

// holdsFor says whether a statement about a socket's descriptor is certain.
func holdsFor(socket *net.TCPConn, statement func(descriptor int) bool) bool {
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	holds := false
	err = raw.Control(func(descriptor uintptr) { holds = statement(int(descriptor)) })
	return err == nil && holds
}

// A tlsConn is TLS over a rawConn. The peer's close_notify is not its end: another process may hold the socket still, as the guardian of a
// command does, until nothing is left that counts on what was told. What comes behind it is nobody's, and the socket says how it ends.
type tlsConn struct {
	net.Conn
	socket io.Reader
}

func (c *tlsConn) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	if errors.Is(err, io.EOF) {
		_, _ = io.Copy(io.Discard, c.socket) // classified there
	}
	return n, err
}

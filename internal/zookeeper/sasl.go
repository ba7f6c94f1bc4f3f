package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/jute"
	"github.com/sidekeeper/sidekeeper/internal/sasl"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// With Config.SASL, each connection begins with an exchange of packets right behind the answer to the handshake, before anything else is asked.
// A session that comes back over another connection begins with one, too. A connection over which it fails is closed, and the next server is
// tried: one of them may lack its key. What is asked meanwhile fails with ErrUnauthenticated once a side has refused the other. It fails with
// ErrUnreachable while a server or a KDC only does not answer: that may pass.

const (
	opSASL   = 102
	saslXid  = firstOwnXid - 1 // of packets that are answered before anything else is asked
	mostSASL = 6               // packets of one exchange
)

// saslTold is how often the log says the same of a failure.
const saslTold = time.Minute

// A saslState is what has become of the newest attempts to authenticate.
type saslState struct {
	mu   sync.Mutex
	err  error // what calls fail with after the newest one; nil after one that succeeded, or did not begin
	told map[saslReport]time.Time
}

// A saslReport is what the log is told of a server once in a while.
type saslReport struct{ what, server, failure string }

// failureOf is what two failures have in common that are told as one: texts may hold ports, which differ from one connection to the next.
func failureOf(err error) string {
	if errors.Is(err, sasl.ErrUnreached) {
		return sasl.ErrUnreached.Error()
	}
	if broken, is := errors.AsType[*net.OpError](err); is {
		return broken.Op + ": " + broken.Err.Error()
	}
	return err.Error()
}

// authenticate has both sides proved who they are over the session's new connection, which it closes if that fails. It waits: the library has
// just been told that it is connected, and reads and writes nothing before this returns.
func (s *Session) authenticate() bool {
	who := s.client.config.SASL
	if who == nil {
		return true
	}
	s.mu.Lock()
	w, address := s.wire, s.address
	s.mu.Unlock()
	limit := time.Now().Add(s.serverTimeout())
	_, _ = w.Conn.SetReadDeadline(limit), w.Conn.SetWriteDeadline(limit) // fails only once the connection is closed
	err := exchangeSASL(w.input, w.Conn, who, address)
	if err == nil {
		s.client.authenticated(address)
		return true
	}
	if s.Err() == nil { // or its end has closed the connection
		s.client.unauthenticated(address, err)
	}
	if errors.Is(err, errAuthFailed) {
		s.lose(errAuthFailed)
	}
	w.drop()
	return false
}

// prepareSASL returns once there is what it takes to authenticate at a server.
func (s *Session) prepareSASL(address string) error {
	who := s.client.config.SASL
	if who == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.over, min(time.Second, s.serverTimeout()))
	defer cancel()
	err := s.client.prepareSASL(ctx, address)
	if err != nil && s.Err() == nil {
		s.client.unauthenticated(address, err)
		s.countAttempt()
	}
	return err
}

func (c *Client) prepareSASL(ctx context.Context, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	err = c.config.SASL.Ready(ctx, host)
	if err == nil || errors.Is(err, sasl.ErrUnreached) {
		return err
	}
	return refusal{err}
}

// A refusal says that a side refuses the other, or that the sidecar lacks what it takes to ask: time alone mends none of these.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// exchangeSASL authenticates over a connection behind its handshake. What was sent with it is answered before.
func exchangeSASL(from io.Reader, to io.Writer, who sasl.Identity, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	exchange, err := who.Begin(host)
	if err != nil {
		return err
	}
	var answer []byte
	for range mostSASL {
		token, done, err := exchange.Next(answer)
		switch {
		case err != nil:
			if errors.Is(err, sasl.ErrNothing) {
				who.Refused(host)
			}
			return refusal{err}
		case done:
			return nil
		}
		if _, err := to.Write(saslFrame(token)); err != nil {
			return err
		}
		if answer, err = saslAnswer(from); err != nil {
			if errors.Is(err, errSASLRefused) {
				who.Refused(host)
			}
			return err
		}
	}
	return refusal{errors.New("the server does not come to an end")}
}

// saslFrame is one packet with a token.
func saslFrame(token []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+4+4+len(token)))
	b = binary.BigEndian.AppendUint32(b, saslXid)
	b = binary.BigEndian.AppendUint32(b, opSASL)
	b = binary.BigEndian.AppendUint32(b, uint32(len(token)))
	return append(b, token...)
}

// errSASLRefused wraps what a server says that refuses the client.
var errSASLRefused = errors.New("the server refuses the client, and its log says why")

// saslAnswer waits for the token that answers one.
func saslAnswer(from io.Reader) ([]byte, error) {
	for {
		reply, err := readReply(from)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("the server closed the connection")
		case timedOut(err):
			return nil, errors.New("the server does not answer in time")
		case err != nil:
			return nil, err
		}
		xid, code := int32(binary.BigEndian.Uint32(reply)), int32(binary.BigEndian.Uint32(reply[12:]))
		switch {
		case xid == authXid && code != 0:
			return nil, refusal{errAuthFailed}
		case xid != saslXid:
			continue
		case code == codeAuthDemanded, code == codeAuthFailed:
			return nil, refusal{fmt.Errorf("%w (code %d)", errSASLRefused, code)}
		case code != 0:
			return nil, fmt.Errorf("the server answers with code %d", code)
		}
		body := jute.NewDecoder(reply[replyHead:])
		token := body.Bytes()
		if body.Failed() {
			return nil, errMalformed
		}
		return token, nil
	}
}

// authenticated takes in that both sides are proved.
func (c *Client) authenticated(address string) {
	c.saslState.mu.Lock()
	before := c.saslState.err
	c.saslState.err = nil
	maps.DeleteFunc(c.saslState.told, func(told saslReport, _ time.Time) bool { return told.server == address })
	c.saslState.mu.Unlock()
	if before != nil {
		c.config.Log.Info("authenticated with the ensemble", zap.String("server", address), zap.Stringer("identity", c.config.SASL))
	}
}

// unauthenticated takes in why the sidecar could not authenticate at a server, and has the log say so.
func (c *Client) unauthenticated(address string, err error) {
	means := recipes.ErrUnreachable
	if _, refused := errors.AsType[refusal](err); refused {
		means = recipes.ErrUnauthenticated
	}
	c.saslState.mu.Lock()
	c.saslState.err = fmt.Errorf("%w: %v at %s: %w", means, c.config.SASL, address, err)
	c.saslState.mu.Unlock()
	c.tellSASL("not authenticated with the ensemble", address, err)
}

// unasked takes in that a server was not reached, or left the handshake unanswered: what another one said before may be over.
func (s *Session) unasked() {
	if s.Err() != nil {
		return // its end has closed the connection
	}
	c := s.client
	c.saslState.mu.Lock()
	defer c.saslState.mu.Unlock()
	c.saslState.err = nil
}

// keepSASL has the identity renew its tickets.
func (c *Client) keepSASL(ctx context.Context) {
	c.config.SASL.Keep(ctx, c.isHost, func(host string, err error) { c.tellSASL("ticket not renewed", host, err) })
}

// isHost says whether one of the servers that are used has this host.
func (c *Client) isHost(name string) bool {
	first, rest, _ := c.servers.current()
	return slices.ContainsFunc(slices.Concat(first, rest), func(server string) bool {
		host, _, _ := net.SplitHostPort(server)
		return host == name
	})
}

// tellSASL has the log say what has failed towards a server, each kind of failure no more than once a minute.
func (c *Client) tellSASL(what, server string, err error) {
	report, now := saslReport{what, server, failureOf(err)}, time.Now()
	c.saslState.mu.Lock()
	maps.DeleteFunc(c.saslState.told, func(_ saslReport, at time.Time) bool { return now.Sub(at) >= saslTold })
	_, told := c.saslState.told[report]
	if !told {
		c.saslState.told[report] = now
	}
	c.saslState.mu.Unlock()
	if !told {
		c.config.Log.Warn(what, zap.String("server", server), zap.Stringer("identity", c.config.SASL), zap.Error(err))
	}
}

// whyUnauthenticated is what calls fail with since the newest attempt to authenticate has failed, nil if it has not.
func (c *Client) whyUnauthenticated() error {
	c.saslState.mu.Lock()
	defer c.saslState.mu.Unlock()
	return c.saslState.err
}

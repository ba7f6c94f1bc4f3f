package caller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc/credentials"

	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// Handshake is how a server meets a new connection: it finds out who calls, and has the connection note how it ends.
// A Unix socket's peer is known by its uid, or by the socket if that has an identity of its own; on TCP it is known by a client
// certificate if secure is set, else as loopback.
type Handshake struct {
	Secure    credentials.TransportCredentials     // TLS that demands a client certificate; nil for plaintext on loopback
	Socket    string                               // the identity of all who call on a Unix socket; empty for their users'
	Operators bool                                 // whether only root and the sidecar's own user may call, as operators
	Trusting  bool                                 // whether whoever calls is an operator
	Refused   func(identity string)                // told of whoever is no operator
	Misled    func(peer net.Addr, trouble error)   // told of a connection that begins otherwise than callers' do; nil, none is
	Admit     func(silent io.Closer) (Slot, error) // lets a connection in, or not; silent is one that has to show yet whose it is, else nil
}

// An Identified is a connection inside of the process, whose caller has shown already who it is, over HTTP. How either connection ends says
// nothing about the caller: libraries for HTTP, and proxies, close theirs while callers go on counting on what they were told.
// So nothing is held over one.
type Identified struct {
	net.Conn

	Identity string
}

// A Slot is the place of one connection among those that were let in.
type Slot interface {
	Identify(identity string) error // says whose connection it is, and returns when it may be greeted
	Pace()                          // returns when it may be read
	Leave()                         // is called at its end, once or more
}

// ServerHandshake implements credentials.TransportCredentials.
func (h Handshake) ServerHandshake(socket net.Conn) (net.Conn, credentials.AuthInfo, error) {
	var silent io.Closer
	if h.Secure != nil && !isUnix(socket) {
		silent = socket
	}
	slot, err := h.Admit(silent)
	if err != nil {
		return nil, nil, err
	}
	raw := &rawConn{Conn: socket, ending: newEnding(), slot: slot, local: isLocal(socket)}
	if h.Secure == nil || isUnix(socket) {
		raw.misled = h.Misled
	}
	conn, caller, err := h.meet(raw)
	if err == nil {
		err = slot.Identify(caller.Identity)
	}
	if err != nil {
		slot.Leave()
		return nil, nil, err
	}
	caller.Operator = h.Operators || h.Trusting
	caller.Ending, caller.Slot, caller.Unix = cmp.Or(caller.Ending, raw.ending), slot, isUnix(socket)
	return conn, caller, nil
}

func (h Handshake) meet(raw *rawConn) (net.Conn, Caller, error) {
	if socket, ok := raw.Conn.(*net.UnixConn); ok {
		caller, err := h.meetProcess(socket)
		return raw, caller, err
	}
	if identified, ok := raw.Conn.(Identified); ok {
		return raw, Caller{Identity: identified.Identity, Ending: newEnding()}, nil
	}
	if h.Secure == nil {
		return raw, Caller{Identity: policy.Loopback}, nil
	}
	conn, info, err := h.Secure.ServerHandshake(raw)
	if err != nil {
		if h.Misled != nil {
			h.Misled(raw.RemoteAddr(), err)
		}
		return nil, Caller{}, err
	}
	certificate := info.(credentials.TLSInfo).State.PeerCertificates[0]
	identity, err := IdentityOf(certificate)
	if err != nil {
		return nil, Caller{}, err
	}
	return &tlsConn{conn, raw}, Caller{Identity: identity}, nil
}

// meetProcess asks the kernel who connected. Its answer is of when the peer connected: a process that takes the number of
// one that has ended gets nothing by it, since nothing is decided by that number.
func (h Handshake) meetProcess(socket *net.UnixConn) (Caller, error) {
	uid, process, err := peerCredential(socket)
	if err != nil {
		return Caller{}, fmt.Errorf("peer of the Unix socket: %w", err)
	}
	if h.Operators && !isOperator(uid) {
		h.Refused(policy.User + strconv.Itoa(uid))
		return Caller{}, fmt.Errorf("uid %d is neither root nor the sidecar's user: no operator", uid)
	}
	identity := h.Socket
	if identity == "" {
		identity = policy.User + strconv.Itoa(uid)
	}
	return Caller{Identity: identity, Process: process}, nil
}

func isOperator(uid int) bool { return uid == 0 || uid == os.Getuid() }

func isUnix(socket net.Conn) bool {
	_, is := socket.(*net.UnixConn)
	return is
}

func isLocal(socket net.Conn) bool {
	remote, ok := socket.RemoteAddr().(*net.TCPAddr)
	return !ok || remote.IP.IsLoopback()
}

// Info implements credentials.TransportCredentials.
func (h Handshake) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "sidekeeper"}
}

// Clone implements credentials.TransportCredentials.
func (h Handshake) Clone() credentials.TransportCredentials { return h }

// OverrideServerName implements credentials.TransportCredentials, for clients, which this is not for.
func (h Handshake) OverrideServerName(string) error { return errServerOnly }

// ClientHandshake implements credentials.TransportCredentials, for clients, which this is not for.
func (h Handshake) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errServerOnly
}

var errServerOnly = errors.New("credentials of a server cannot dial")

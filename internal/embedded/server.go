package embedded

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// A Server lets ZooKeeper clients of any kind use an Ensemble through the wire protocol. It listens on loopback only,
// and has two goroutines for each connection.
type Server struct {
	ensemble *Ensemble
	listener net.Listener
	limit    int
	running  sync.WaitGroup

	// Behind the ensemble's mutex.
	connections map[*connection]struct{}
	received    int64
	sent        int64
	closed      bool
	silence     silence
}

// ServerOptions are the settings of a Server.
type ServerOptions struct {
	// Address is a loopback address with a port, 0 for one the system chooses. "127.0.0.1:0" if empty.
	Address string
	// MaxConnections is how many connections one address may have (ZooKeeper's maxClientCnxns); 0 for no limit.
	MaxConnections int
}

// ErrNotLoopback means that other machines could reach the address.
var ErrNotLoopback = errors.New("the embedded ensemble listens on loopback addresses only")

// Serve begins to accept connections. Close ends them.
func Serve(e *Ensemble, options ServerOptions) (*Server, error) {
	if options.Address == "" {
		options.Address = "127.0.0.1:0"
	}
	address, err := netip.ParseAddrPort(options.Address)
	if err != nil {
		return nil, fmt.Errorf("address of the embedded ensemble: %w", err)
	}
	if !address.Addr().IsLoopback() {
		return nil, fmt.Errorf("%s: %w", address, ErrNotLoopback)
	}
	listener, err := net.Listen("tcp", options.Address)
	if err != nil {
		return nil, fmt.Errorf("embedded ensemble: %w", err)
	}
	s := &Server{
		ensemble: e, listener: listener, limit: options.MaxConnections,
		connections: map[*connection]struct{}{},
	}
	s.running.Go(s.accept)
	return s, nil
}

// Address is where the server listens, as host:port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close stops listening and cuts all connections. Their sessions live on until they time out.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.ensemble.mu.Lock()
	s.closed = true
	s.breakSilence()
	for c := range s.connections {
		_ = c.socket.Close()
	}
	s.ensemble.mu.Unlock()
	s.running.Wait()
}

func (s *Server) accept() {
	for {
		socket, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client has gone before it was accepted
		}
		c := newConnection(s, socket)
		if !s.admit(c) {
			_ = socket.Close()
			continue
		}
		s.running.Go(c.read)
		s.running.Go(c.flush)
	}
}

// admit takes a connection into the books unless its address has too many.
func (s *Server) admit(c *connection) bool {
	s.ensemble.mu.Lock()
	defer s.ensemble.mu.Unlock()
	same := 0
	for other := range s.connections {
		if other.address() == c.address() {
			same++
		}
	}
	if s.closed || s.limit > 0 && same >= s.limit {
		return false
	}
	s.connections[c] = struct{}{}
	return true
}

package store

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"slices"
	"sync"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// A Server keeps the counters. It notes each write in a history, in its own order.
type Server struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu          sync.Mutex
	history     *history.Writer
	counters    map[string]*counter // by store and lock
	connections map[net.Conn]struct{}
	closed      bool
	lost        int
	ambushes    []ambush
}

type counter struct {
	value int64
	token int64 // the largest seen
}

// A Visit is a client that has read and not been answered yet.
type Visit struct {
	Client  int
	Lock    string
	value   int64 // that it was about to be answered
	release chan struct{}
}

// An ambush waits for a client that works under a lock.
type ambush struct {
	lock  string
	visit chan *Visit // capacity one
}

// Release answers the client.
func (v *Visit) Release() { close(v.release) }

// Serve keeps counters at a Unix socket. The caller must close the server.
func Serve(path string) (*Server, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener, counters: map[string]*counter{}, connections: map[net.Conn]struct{}{}}
	s.serving.Go(s.accept)
	return s, nil
}

// Begin starts anew: all counters are 0, and writes are noted in another history.
func (s *Server) Begin(to *history.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.counters, s.lost = to, map[string]*counter{}, 0
}

// Lost is how many updates of the naive store were overwritten by somebody who had not seen them, since Begin.
func (s *Server) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Ambush waits for the next client that reads from the naive store under this lock, which is the last thing it does before
// it writes. The client gets no answer until the visit is released.
func (s *Server) Ambush(ctx context.Context, lock string) (*Visit, error) {
	laid := ambush{lock, make(chan *Visit, 1)}
	s.mu.Lock()
	s.ambushes = append(s.ambushes, laid)
	s.mu.Unlock()
	select {
	case visit := <-laid.visit:
		return visit, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.ambushes, laid); i >= 0 {
		s.ambushes = slices.Delete(s.ambushes, i, i+1)
		return nil, context.Cause(ctx)
	}
	return <-laid.visit, nil // it came at the last moment
}

// Overtaken says whether others have written since the client of a visit has read.
func (s *Server) Overtaken(visit *Visit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters[history.Naive+" "+visit.Lock].value > visit.value
}

// Close ends the server and returns when nobody is served any more.
func (s *Server) Close() {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for conn := range s.connections {
		conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		if !s.add(conn) {
			conn.Close()
			return
		}
		s.serving.Go(func() { s.serve(conn) })
	}
}

func (s *Server) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections[conn] = struct{}{}
	return !s.closed
}

func (s *Server) serve(conn net.Conn) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.connections, conn)
		conn.Close()
	}()
	decoder, encoder := json.NewDecoder(bufio.NewReader(conn)), json.NewEncoder(conn)
	for {
		var q question
		if decoder.Decode(&q) != nil {
			return
		}
		a := s.answer(q)
		s.spring(q, a.Value)
		if err := encoder.Encode(a); err != nil {
			return
		}
	}
}

// spring holds up a client that has walked into an ambush.
func (s *Server) spring(q question, value int64) {
	if q.Write || q.Store != history.Naive {
		return
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.ambushes, func(a ambush) bool { return a.lock == q.Lock })
	if i < 0 {
		s.mu.Unlock()
		return
	}
	visit := &Visit{Client: q.Client, Lock: q.Lock, value: value, release: make(chan struct{})}
	s.ambushes[i].visit <- visit
	s.ambushes = slices.Delete(s.ambushes, i, i+1)
	s.mu.Unlock()
	<-visit.release
}

func (s *Server) answer(q question) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := q.Store + " " + q.Lock
	c := s.counters[name]
	if c == nil {
		c = &counter{}
		s.counters[name] = c
	}
	refused := q.Store == history.Fenced && q.Token < c.token
	if q.Write {
		s.note(q, refused)
	}
	if refused {
		return answer{Value: c.value, Refused: true}
	}
	c.token = max(c.token, q.Token)
	if q.Write {
		s.set(q, c)
	}
	return answer{Value: c.value}
}

func (s *Server) set(q question, c *counter) {
	if q.Store == history.Naive && q.Value <= c.value {
		s.lost++
	}
	c.value = q.Value
}

func (s *Server) note(q question, refused bool) {
	event := history.Event{Kind: history.Accepted, Store: q.Store, Lock: q.Lock, Token: q.Token, Value: q.Value}
	if refused {
		event.Kind = history.Refused
	}
	if s.history != nil {
		s.history.Append(event)
	}
}

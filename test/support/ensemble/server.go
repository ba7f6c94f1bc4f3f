package ensemble

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/link"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// A Server is one ZooKeeper server of an ensemble. All its methods may be called at any time from any goroutine, until
// the ensemble is closed.
type Server struct {
	ensemble  *Ensemble
	id        int
	directory string
	ports     ports
	clients   *link.Link
	peers     map[int]peerLinks // those this server dials, by the peer's id

	mutex   sync.Mutex
	process *process.Process // the last one started; nil before the first
	frozen  bool
}

// newServer prepares a server; what it opens is closed by close.
func newServer(e *Ensemble, id int) (*Server, error) {
	s := &Server{ensemble: e, id: id, peers: map[int]peerLinks{}}
	s.directory = filepath.Join(e.directory, "server-"+strconv.Itoa(id))
	if err := os.MkdirAll(s.directory, 0o700); err != nil {
		return nil, err
	}
	var err error
	if s.ports, err = reservePorts(); err != nil {
		return nil, err
	}
	s.clients, err = link.New(link.Options{
		Address:   net.JoinHostPort("127.0.0.1", strconv.Itoa(e.options.clientPort(id))),
		Target:    s.clientPort().address(),
		ZooKeeper: true,
	})
	if err != nil {
		s.ports.release()
		return nil, err
	}
	return s, nil
}

// clientPort is the one clients are to use.
func (s *Server) clientPort() port {
	if s.ensemble.options.TLS != nil {
		return s.ports.secure
	}
	return s.ports.client
}

// ID is the server's number, from one.
func (s *Server) ID() int { return s.id }

// Address is where clients reach the server, through ClientLink.
func (s *Server) Address() string { return s.clients.Address() }

// RealAddress is where the server itself listens for clients without TLS: for measuring, and for asking it how it is
// while its link is cut.
func (s *Server) RealAddress() string { return s.ports.client.address() }

// Member is the server as a reconfiguration adds it: server.N=, and where its peers and its clients reach it, past all links.
func (s *Server) Member() string {
	return fmt.Sprintf("server.%d=127.0.0.1:%d:%d;%s", s.id, s.ports.quorum.number, s.ports.election.number, s.RealAddress())
}

// ClientLink is the link between clients and the server. It reads ZooKeeper's frames unless the ensemble has TLS.
func (s *Server) ClientLink() *link.Link { return s.clients }

// Log is the path of the file with all that the server has logged.
func (s *Server) Log() string { return filepath.Join(s.directory, "log") }

// ProcessID is the number of the server's process, or 0 if none runs.
func (s *Server) ProcessID() int {
	if p := s.current(); p.Running() {
		return p.ID()
	}
	return 0
}

// Kill ends the server at once, as the kernel does that is out of memory, and returns when its process has ended.
func (s *Server) Kill() { s.current().Kill() }

// Stop asks the server to shut down, and returns when its process has ended. One that is frozen goes on first.
func (s *Server) Stop() {
	s.Continue()
	s.current().End(syscall.SIGTERM)
}

// Freeze suspends the server's process, as a long pause of its garbage collector does, and returns when it has stopped.
// Its connections stay open and take in what fits the kernel's buffers.
func (s *Server) Freeze() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.process.Running() {
		s.process.Freeze()
		s.frozen = true
	}
}

// Continue ends Freeze.
func (s *Server) Continue() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.frozen {
		s.process.Continue()
		s.frozen = false
	}
}

// Restart starts the server again, with the data it had, after killing it if it runs. It returns when the process has
// started; [Ensemble.AwaitAll] returns when it has joined.
func (s *Server) Restart() error {
	s.Kill()
	return s.start()
}

// start writes the server's configuration and starts its process.
func (s *Server) start() error {
	if err := s.configure(); err != nil {
		return err
	}
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	command := exec.Command(s.ensemble.java, s.ensemble.options.flags(s, s.ensemble.classPath)...)
	command.Dir = s.directory
	if command.Env, err = s.clock(); err != nil {
		log.Close()
		return err
	}
	command.Stdout = s.output(log)
	command.Stderr = command.Stdout
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.process, err = s.ensemble.nursery.Start(command, log)
	s.frozen = false
	return err
}

// clock is the environment in which the server finds its wall clock ahead; nil for the machine's. Timers go by another clock.
func (s *Server) clock() ([]string, error) {
	if s.Ahead() == 0 {
		return nil, nil
	}
	libraries, err := filepath.Glob("/usr/lib*/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(libraries) == 0 {
		return nil, errors.New("a server whose clock is wrong takes libfaketime: install faketime")
	}
	ahead := fmt.Sprintf("FAKETIME=%+d", int(s.Ahead().Seconds()))
	timers := []string{"FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_FORCE_MONOTONIC_FIX=0"} // or Java's waits end at once
	return append(os.Environ(), append(timers, "LD_PRELOAD="+libraries[0], ahead)...), nil
}

// Ahead is how far the server's wall clock is ahead of the machine's.
func (s *Server) Ahead() time.Duration {
	if clocks := s.ensemble.options.Clocks; len(clocks) >= s.id {
		return clocks[s.id-1]
	}
	return 0
}

func (s *Server) configure() error {
	number := strconv.Itoa(s.id)
	if err := os.WriteFile(filepath.Join(s.directory, "myid"), []byte(number), 0o600); err != nil {
		return err
	}
	text := s.ensemble.options.config(s)
	return os.WriteFile(filepath.Join(s.directory, "zoo.cfg"), []byte(text), 0o600)
}

// output is where the server's log goes.
func (s *Server) output(log *os.File) io.Writer {
	if s.ensemble.lines == nil {
		return log
	}
	return io.MultiWriter(log, s.ensemble.lines.from(fmt.Sprintf("server %d: ", s.id)))
}

func (s *Server) current() *process.Process {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.process
}

// asleep tells whether it is useless to ask the server anything.
func (s *Server) asleep() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.frozen || !s.process.Running()
}

// close ends what the server consists of; its process has been killed before.
func (s *Server) close() {
	s.clients.Close()
	for _, links := range s.peers {
		links.close()
	}
	s.ports.release()
}

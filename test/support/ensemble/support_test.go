package ensemble

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/test/support/full"
)

// limit is how long a test waits for what must happen, on a machine that has other things to do.
const limit = time.Minute

// quick is the options of most tests: a follower notices after two seconds that it is cut off.
var quick = Options{TickTime: 200 * time.Millisecond, SyncLimit: 10}

// within is a context for what must happen.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// start starts an ensemble that is closed when the test ends.
func start(t *testing.T, options Options) *Ensemble {
	t.Helper()
	full.Needs(t, "an ensemble")
	began := time.Now()
	e, err := Start(within(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Logf("%d up after %v", len(e.Servers()), time.Since(began).Round(time.Millisecond))
	return e
}

// await waits until a server has a role.
func awaitRole(t *testing.T, s *Server, role Role) {
	t.Helper()
	err := await(within(t), []*Server{s}, func(now []status) bool { return now[0].role == role })
	if err != nil {
		t.Fatal(err)
	}
}

func awaitQuorum(t *testing.T, e *Ensemble, among ...*Server) *Server {
	t.Helper()
	s, err := e.AwaitQuorum(within(t), among...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func awaitAll(t *testing.T, e *Ensemble) {
	t.Helper()
	if err := e.AwaitAll(within(t)); err != nil {
		t.Fatal(err)
	}
}

// heal heals all links and waits until nothing is to be seen of what was done.
func heal(t *testing.T, e *Ensemble) {
	t.Helper()
	e.Heal()
	for _, s := range e.Servers() {
		s.Continue()
	}
	awaitAll(t, e)
}

// others is all servers but one.
func others(e *Ensemble, but *Server) []*Server {
	var rest []*Server
	for _, s := range e.Servers() {
		if s != but {
			rest = append(rest, s)
		}
	}
	return rest
}

// open lets everybody do everything.
var open = zk.WorldACL(zk.PermAll)

// silence keeps go-zookeeper from logging.
type silence struct{}

func (silence) Printf(string, ...any) {}

// attach opens a session through the link of a server.
func attach(t *testing.T, s *Server) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{s.Address()}, 4*time.Second, zk.WithLogger(silence{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	expired := time.After(limit)
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return conn
			}
		case <-expired:
			t.Fatal("no session")
		}
	}
}

// isGone tells whether there is no process with a number.
func isGone(process int) bool {
	return errors.Is(syscall.Kill(process, 0), syscall.ESRCH)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

package zookeeper

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/full"
)

// tick is short, so that tests wait little: all times of the ensemble follow from it.
const tick = 200 * time.Millisecond

func startEnsemble(t *testing.T, options ensemble.Options) *ensemble.Ensemble {
	t.Helper()
	full.Needs(t, "an ensemble")
	e, err := ensemble.Start(t.Context(), defaults(options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func defaults(options ensemble.Options) ensemble.Options {
	options.TickTime = cmp.Or(options.TickTime, tick)
	options.MaxSessionTimeout = cmp.Or(options.MaxSessionTimeout, 30*time.Second)
	return options
}

// Ensembles of tests that leave them as they were, and do not run beside each other.
var (
	oneServer = &shared{options: ensemble.Options{Servers: 1, ContainerCheck: 50 * time.Millisecond, MaxClientConnections: -1}}
	slowTicks = &shared{options: ensemble.Options{TickTime: 2 * time.Second, MinSessionTimeout: time.Second}}
)

// A shared ensemble is started by the first test that needs it.
type shared struct {
	options ensemble.Options
	start   sync.Once
	started *ensemble.Ensemble
	err     error
}

func (s *shared) ensemble(t *testing.T) *ensemble.Ensemble {
	t.Helper()
	full.Needs(t, "an ensemble")
	s.start.Do(func() { s.started, s.err = ensemble.Start(context.WithoutCancel(t.Context()), defaults(s.options)) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.started
}

func TestMain(m *testing.M) {
	status := m.Run()
	for _, each := range []*shared{oneServer, slowTicks} {
		if each.started != nil {
			each.started.Close()
		}
	}
	os.Exit(status)
}

func newClient(t *testing.T, e *ensemble.Ensemble, adjust ...func(*Config)) *Client {
	t.Helper()
	config := Config{
		Servers:        e.ClientAddresses(),
		SessionTimeout: 4 * time.Second,
		TickTime:       tick,
		SyncLimit:      5,
		Heartbeat:      250 * time.Millisecond,
		Directories:    []string{"/sidekeeper"},
	}
	if os.Getenv("SIDEKEEPER_TEST_LOG") != "" {
		config.Log, _ = zap.NewDevelopment()
	}
	for _, a := range adjust {
		a(&config)
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// openSession opens a session. A server that has just begun may need longer for its first handshake than Open waits.
func openSession(t *testing.T, c *Client) *Session {
	t.Helper()
	began := time.Now()
	s, err := c.Open(t.Context(), 0)
	for errors.Is(err, recipes.ErrUnreachable) && time.Since(began) < patience {
		s, err = c.Open(t.Context(), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

// within ends the test's patience.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// await waits for a channel to be closed.
func await(t *testing.T, what string, d time.Duration, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(d):
		t.Fatalf("%s: not within %v", what, d)
	}
}

// awaitSuspended waits until the session is suspended, or is not.
func awaitSuspended(t *testing.T, s *Session, want bool) {
	t.Helper()
	for ctx := within(t, 20*time.Second); ; {
		suspended, changed := s.Suspended()
		if suspended == want {
			return
		}
		select {
		case <-changed:
		case <-s.Done():
			t.Fatalf("the session ended: %v", s.Err())
		case <-ctx.Done():
			t.Fatalf("suspended: still %v", suspended)
		}
	}
}

func enqueue(t *testing.T, s *Session, dir string) string {
	t.Helper()
	made, err := s.Enqueue(t.Context(), dir, "-lock-", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	name := made.Name
	return dir + "/" + name
}

// awaitGone waits until the node is gone and returns when that was seen.
func awaitGone(t *testing.T, tree recipes.Tree, path string) instant {
	t.Helper()
	for ctx := within(t, 40*time.Second); ; {
		_, changed, err := tree.Watch(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) {
			return now()
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		select {
		case <-changed.Done():
		case <-ctx.Done():
			t.Fatalf("%s: still there", path)
		}
	}
}

// takeOver attaches to a session from outside, knowing only its id, from which servers compute its password, and closes it
// if told to. It is what anybody can do who can reach the ensemble's port.
func takeOver(t *testing.T, address string, id int64, closeIt bool) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := make([]byte, 48)
	binary.BigEndian.PutUint32(request, 44)
	binary.BigEndian.PutUint32(request[16:], 4000)
	binary.BigEndian.PutUint64(request[20:], uint64(id))
	binary.BigEndian.PutUint32(request[28:], 16)
	copy(request[32:], password(id))
	if closeIt {
		opClose := int32(-11)
		request = binary.BigEndian.AppendUint32(request, 8)
		request = binary.BigEndian.AppendUint32(request, 1)
		request = binary.BigEndian.AppendUint32(request, uint32(opClose))
	}
	answer := make([]byte, 4+36)
	if _, err := conn.Write(request); err != nil {
		t.Fatal(err)
	}
	// The session may take itself back before the answer comes, which ends this connection.
	if _, err := io.ReadFull(conn, answer); err == nil {
		if got := int64(binary.BigEndian.Uint64(answer[12:])); got != id && got != 0 {
			t.Fatalf("took over session %x instead of %x", got, id)
		}
	}
	if closeIt {
		io.Copy(io.Discard, conn) // the server hangs up when it has closed the session
	}
}

// password is how ZooKeeper derives the password of a session: java.util.Random seeded with the id and a constant.
func password(id int64) []byte {
	const multiplier, mask = 0x5DEECE66D, 1<<48 - 1
	seed := (uint64(id^0xB3415C00) ^ multiplier) & mask
	var b []byte
	for range 4 {
		seed = (seed*multiplier + 0xB) & mask
		b = binary.LittleEndian.AppendUint32(b, uint32(seed>>16))
	}
	return b
}

package embedded_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts an ensemble of its own for a test.
func serve(t *testing.T, options embedded.Options) (*embedded.Ensemble, *embedded.Server) {
	t.Helper()
	e := embedded.New(options)
	s, err := embedded.Serve(e, embedded.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Cleanup(s.Close)
	return e, s
}

func connect(t *testing.T, s *embedded.Server) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect([]string{s.Address()}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestSilentClientsExpireAndTalkingOnesDoNot(t *testing.T) {
	e, s := serve(t, embedded.Options{Tick: 50 * time.Millisecond})
	c, _, err := zk.Connect([]string{s.Address()}, 300*time.Millisecond, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	watcher := connect(t, s)
	_, _, gone, err := watcher.ExistsW("/e")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
		t.Fatal("a client that pings was expired")
	case <-time.After(time.Second):
	}
	if err := e.Expire(c.SessionID()); err != nil {
		t.Fatal(err)
	}
	if event := <-gone; event.Type != zk.EventNodeDeleted {
		t.Errorf("event %v", event)
	}
	if err := e.Expire(1); !errors.Is(err, embedded.ErrNoSession) {
		t.Errorf("expiry of an unknown session: %v", err)
	}
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	e := embedded.New(embedded.Options{})
	for _, address := range []string{"0.0.0.0:0", "192.0.2.1:0", ":0"} {
		if s, err := embedded.Serve(e, embedded.ServerOptions{Address: address}); err == nil {
			s.Close()
			t.Errorf("listens on %s", address)
		}
	}
}

package embedded

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

func TestASilentServerAnswersNobodyUntilItsTimeIsOver(t *testing.T) {
	server := startServer(t, ServerOptions{})
	before := converse(t, server.Address())
	server.Suspend(time.Hour)
	after := converse(t, server.Address()) // is accepted, as by a server behind a cut network
	for _, socket := range []net.Conn{before, after} {
		if _, err := io.WriteString(socket, "ruok"); err != nil {
			t.Fatal(err)
		}
		if answer, err := hear(socket, 100*time.Millisecond); err == nil {
			t.Errorf("a silent server answers %q", answer)
		}
	}
	server.Suspend(50 * time.Millisecond) // the newest call counts
	for _, socket := range []net.Conn{before, after} {
		if answer, err := hear(socket, 10*time.Second); err != nil || answer != "imok" {
			t.Errorf("after the silence the server answers %q, %v", answer, err)
		}
	}
}

func TestASilentServerCanBeClosed(t *testing.T) {
	server := startServer(t, ServerOptions{})
	socket := converse(t, server.Address())
	server.Suspend(time.Hour)
	if _, err := io.WriteString(socket, "ruok"); err != nil {
		t.Fatal(err)
	}
	server.Close()
	server.Suspend(time.Hour) // leaves no timer behind
	if server.silence.over != nil {
		t.Error("a closed server begins to be silent")
	}
}

func TestSessionsRunOutDuringASilence(t *testing.T) {
	e := New(Options{Tick: 50 * time.Millisecond})
	t.Cleanup(e.Close)
	server, err := Serve(e, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client, events, err := zk.Connect([]string{server.Address()}, time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	awaitState(t, events, zk.StateHasSession)
	if _, err := client.Create("/a", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	gone := watchNode(t, e, "/a")
	server.Suspend(time.Hour)
	receive(t, gone)
	server.Suspend(0)
	awaitState(t, events, zk.StateExpired)
}

// A client that is told so first has lost its session before anybody else can have what it owned.
func TestACondemnedSessionKeepsItsNodesUntilItExpires(t *testing.T) {
	server := startServer(t, ServerOptions{})
	e := server.ensemble
	client, events, err := zk.Connect([]string{server.Address()}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	awaitState(t, events, zk.StateHasSession)
	if _, err := client.Create("/a", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	session := client.SessionID()
	gone := watchNode(t, e, "/a")
	if err := e.Condemn(session); err != nil {
		t.Fatal(err)
	}
	awaitState(t, events, zk.StateExpired)
	select {
	case <-gone:
		t.Fatal("the node is gone with the client's session")
	default:
	}
	if err := e.Expire(session); err != nil {
		t.Fatal(err)
	}
	receive(t, gone)
	if err := e.Condemn(session); err == nil {
		t.Error("a session that is over was condemned")
	}
}

func converse(t *testing.T, address string) net.Conn {
	t.Helper()
	socket, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return socket
}

func hear(socket net.Conn, patience time.Duration) (string, error) {
	_ = socket.SetReadDeadline(time.Now().Add(patience))
	answer := make([]byte, 4)
	n, err := io.ReadFull(socket, answer)
	return string(answer[:n]), err
}

// watchNode returns a channel that is closed when the node changes.
func watchNode(t *testing.T, e *Ensemble, path string) <-chan struct{} {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.tree.Find(path); err != nil {
		t.Fatal(err)
	}
	changed := make(firstEvent)
	e.Watch(path, false, changed)
	return changed
}

// A firstEvent is closed by the event it watches for.
type firstEvent chan struct{}

func (f firstEvent) Notify(event) { close(f) }

func awaitState(t *testing.T, events <-chan zk.Event, state zk.State) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case event := <-events:
			if event.State == state {
				return
			}
		case <-deadline:
			t.Fatalf("the client has not come to %v", state)
		}
	}
}

func receive(t *testing.T, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(20 * time.Second):
		t.Fatal("what had to happen has not happened")
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

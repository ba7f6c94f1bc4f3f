package embedded

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// A goClient is a client of go-zookeeper's that remembers what it was told.
type goClient struct {
	*zk.Conn

	t       *testing.T
	link    *link.Link
	states  chan zk.State
	watches []goWatch // that have not fired
	state   string    // that was shown last

	mutex sync.Mutex
	told  []zk.Event
}

// A goWatch is a watch and the call that set it.
type goWatch struct {
	call   string
	events <-chan zk.Event
}

// A firing is what a watch was told.
type firing struct {
	call  string
	event zk.Event
}

// patience is how long a script waits for what a server must do.
const patience = time.Minute

// newGoClient returns when the client has a session.
func newGoClient(t *testing.T, address string, timeout time.Duration) *goClient {
	t.Helper()
	l, err := link.New(link.Options{Target: address, ZooKeeper: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	c := &goClient{t: t, link: l, states: make(chan zk.State, 1000)}
	pprof.Do(t.Context(), pprof.Labels("client", l.Address()), func(context.Context) { // the library's goroutines inherit it
		c.Conn, _, err = zk.Connect([]string{l.Address()}, timeout,
			zk.WithEventCallback(c.hear), zk.WithLogInfo(false), zk.WithLogger(silent{}))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.attach()
	return c
}

// attach returns when the client has a session and its library has looked which watches it had before: that comes later,
// and the server would be given a watch twice that had been set in between, and fire it twice.
func (c *goClient) attach() {
	c.t.Helper()
	c.await(zk.StateHasSession)
	deadline := time.Now().Add(patience)
	for !c.hasSetWatches() {
		if time.Now().After(deadline) {
			c.t.Fatal("the client does not settle")
		}
		runtime.Gosched()
	}
}

// hasSetWatches says whether the library's loop waits for the end of its connection, as it does after setting watches.
func (c *goClient) hasSetWatches() bool {
	var text strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&text, 1)
	label := fmt.Sprintf("%q:%q", "client", c.link.Address())
	for goroutine := range strings.SplitSeq(text.String(), "\n\n") {
		if strings.Contains(goroutine, label) && strings.Contains(goroutine, "zk.(*Conn).loop+") {
			return strings.Contains(goroutine, "sync.(*WaitGroup).Wait+")
		}
	}
	return false
}

func (c *goClient) hear(event zk.Event) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.told = append(c.told, event)
	if event.Type == zk.EventSession {
		c.states <- event.State
	}
}

// events gives the events since the last call.
func (c *goClient) events() []zk.Event {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	told := c.told
	c.told = nil
	return told
}

// fired gives the watches that have fired since the last call.
func (c *goClient) fired() []firing {
	var fired []firing
	var left []goWatch
	for _, w := range c.watches {
		select {
		case event := <-w.events:
			fired = append(fired, firing{w.call, event})
		default:
			left = append(left, w)
		}
	}
	c.watches = left
	return fired
}

// awaitWatches returns when all watches have fired, and leaves them to be collected.
func (c *goClient) awaitWatches() {
	c.t.Helper()
	for i, w := range c.watches {
		select {
		case event := <-w.events:
			kept := make(chan zk.Event, 1)
			kept <- event
			c.watches[i].events = kept
		case <-time.After(patience):
			c.t.Fatalf("the watch of %s does not fire", w.call)
		}
	}
}

func (c *goClient) await(state zk.State) {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case got := <-c.states:
			if got == state {
				return
			}
		case <-deadline:
			c.t.Fatalf("the client does not come to %v", state)
		}
	}
}

// part cuts the client off.
func (c *goClient) part() {
	c.link.Refuse()
	c.link.Reset()
	c.await(zk.StateDisconnected)
}

// rejoin lets the client reach the server again, and returns when it has a session, the server knows the session's
// watches and the client has been told what it missed.
func (c *goClient) rejoin() {
	trap := c.link.HoldReply(link.Is(link.SetWatches), 1)
	session, watching := c.SessionID(), len(c.watches) > 0
	c.link.Heal()
	c.attach()
	if watching && c.SessionID() == session {
		select {
		case <-trap.Sprung():
		case <-time.After(patience):
			c.t.Fatal("the client does not set its watches again")
		}
	}
	trap.Release()
	if _, err := c.Sync("/"); err != nil { // the reply comes after all that
		c.t.Error(err)
	}
}

// leave closes the session, and returns when the server has said so.
func (c *goClient) leave() {
	if c.State() != zk.StateHasSession {
		c.Close()
		return
	}
	for len(c.states) > 0 {
		<-c.states
	}
	c.Close()
	c.await(zk.StateDisconnected)
}

package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func TestAWatchOfWhatIsNotThereGoesWithTheLastWhoWaits(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		e := embedded.New(embedded.Options{Tick: time.Second})
		defer e.Close()
		server, err := embedded.Serve(e, embedded.ServerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		c, err := New(Config{
			Servers: []string{server.Address()}, SessionTimeout: 10 * time.Second, TickTime: time.Second, SyncLimit: 5, Heartbeat: time.Second,
			Directories: []string{"/sidekeeper"},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		testWatchesGo(t, server.Address(), c)
	})
	t.Run("real", func(t *testing.T) {
		e := oneServer.ensemble(t)
		testWatchesGo(t, e.Server(1).RealAddress(), newClient(t, e))
	})
}

func testWatchesGo(t *testing.T, address string, c *Client) {
	t.Helper()
	for attempt := 1; !watchesGo(t, address, c, fmt.Sprintf("/sidekeeper/not-there-%d-", attempt)); attempt++ {
		t.Logf("attempt %d: the reader has lost its connection, and with it its watches", attempt)
	}
}

// watchesGo says whether the reader's connection has lasted for as long as it took, without which it shows nothing.
func watchesGo(t *testing.T, address string, c *Client, prefix string) (lasted bool) {
	t.Helper()
	const many = 500
	waiting := func(ctx context.Context, i int) (<-chan struct{}, error) {
		_, changed, err := c.WatchChildren(ctx, fmt.Sprint(prefix, i))
		if !errors.Is(err, recipes.ErrNoNode) {
			return nil, fmt.Errorf("want that it is not there: %w", err)
		}
		return changed.Done(), nil
	}
	if err := c.MakeDirectory(t.Context(), "/sidekeeper"); err != nil {
		t.Fatal(err)
	}
	over, _ := c.reader.current()
	lost := func() bool {
		now, _ := c.reader.current()
		return over == nil || now != over
	}
	first, leave := context.WithCancel(t.Context())
	defer leave()
	for i := range many {
		for range 2 { // the second time, it is shared
			if _, err := waiting(first, i); err != nil {
				t.Fatal(err)
			}
		}
	}
	stays, err := waiting(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if lost() {
		return false
	}
	if at, here := watchesAt(t, address), over.watchesOfLists(); at < many || here < many {
		t.Fatalf("%d watches at the server, %d here: want %d at least", at, here, many)
	}
	leave()
	for ctx := within(t, patience); !lost() && (watchesAt(t, address) > 20 || over.watchesOfLists() > 20); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%d watches are left at the server, and %d here", watchesAt(t, address), over.watchesOfLists())
		}
	}
	again, err := waiting(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, changed := range []<-chan struct{}{stays, again} {
		select {
		case <-changed:
			if !lost() {
				t.Errorf("%d has changed", i)
			}
		default:
		}
		commit(t, c, recipes.Create(fmt.Sprint(prefix, i), nil))
		await(t, "word that it is there", patience, changed)
	}
	return !lost()
}

// watchesOfLists are those that the reader knows of.
func (v *view) watchesOfLists() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.lists)
}

// watchesAt are those that the server has.
func watchesAt(t *testing.T, address string) (watches int) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "wchs"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, sum, _ := strings.Cut(string(answer), "Total watches:")
	if _, err := fmt.Sscan(sum, &watches); err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	return watches
}

// The server has one watch of a session and a path: what is removed must not be what another caller has just armed.
func TestNoWatchIsArmedOnAPathWhileOneIsRemoved(t *testing.T) {
	t.Parallel()
	for name, watch := range map[string]func(v *view, ctx context.Context) *watched{
		"of a node": func(v *view, ctx context.Context) *watched { return v.watched(ctx, somePlace) },
		"of a list": func(v *view, ctx context.Context) *watched {
			_, _ = v.listed(asker{ctx: ctx, stays: ctx}, somePlace)
			return v.lists[somePlace]
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				v, w := newNotThere(t)
				if !v.beginRemoval(t.Context(), somePlace, w) {
					t.Fatal("it is not removed")
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				armed := watch(v, ctx)
				v.session.mu.Lock()
				v.session.err = errClosed // so that the read fails at once
				v.session.end()
				v.session.mu.Unlock()
				synctest.Wait()
				if isClosed(armed.ready) {
					t.Error("it is armed")
				}
				v.endRemoval(somePlace)
				synctest.Wait()
				if !isClosed(armed.ready) {
					t.Error("it is not armed")
				}
			})
		})
	}
}

// A read that arms a watch of the node's data is not overtaken by what removes one.
func TestAWatchIsRemovedWhenThoseThatAreBeingArmedOnItsPathAre(t *testing.T) {
	t.Parallel()
	for _, found := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			v, w := newNotThere(t)
			armed, _ := v.share(v.nodes, somePlace)
			removes := make(chan bool, 1)
			go func() { removes <- v.beginRemoval(t.Context(), somePlace, w) }()
			synctest.Wait()
			if len(removes) > 0 {
				t.Error("the read was not waited for")
			}
			if !found {
				armed.err = recipes.ErrNoNode
			}
			v.settle(v.nodes, somePlace, armed, found)
			if got := <-removes; got == found {
				t.Errorf("the node is there: %v, and the watch is removed: %v", found, got)
			}
		})
	}
}

// newNotThere is a view with a watch of what is not there.
func newNotThere(t *testing.T) (*view, *watched) {
	t.Helper()
	c := &Client{}
	c.reader = &reader{client: c}
	v := newView(c.newSession(time.Second, true))
	w, _ := v.share(v.lists, somePlace)
	w.err = recipes.ErrNoNode
	v.settle(v.lists, somePlace, w, true)
	return v, w
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

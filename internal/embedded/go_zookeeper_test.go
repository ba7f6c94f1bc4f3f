package embedded_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
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

func TestGoZookeeperLocksExcludeEachOther(t *testing.T) {
	_, s := serve(t, embedded.Options{})
	var running sync.WaitGroup
	inside, rounds := 0, 0 // behind the lock
	for range 4 {
		c := connect(t, s)
		running.Go(func() {
			for range 25 {
				lock := zk.NewLock(c, "/orders", zk.WorldACL(zk.PermAll))
				if err := lock.Lock(); err != nil {
					t.Error(err)
					return
				}
				inside++
				if inside != 1 {
					t.Errorf("%d callers inside", inside)
				}
				rounds++
				inside--
				if err := lock.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	if rounds != 100 {
		t.Errorf("%d rounds, want 100", rounds)
	}
}

func TestGoZookeeperUsesEveryCallItHas(t *testing.T) {
	e, s := serve(t, embedded.Options{})
	c := connect(t, s)
	everybody := zk.WorldACL(zk.PermAll)
	var said []string
	say := func(what string, err error) { said = append(said, fmt.Sprint(what, " ", err)) }

	path, err := c.Create("/a", []byte("1"), 0, everybody)
	say("create "+path, err)
	path, err = c.CreateContainer("/c", nil, zk.FlagContainer, everybody)
	say("container "+path, err)
	path, err = c.CreateTTL("/t", nil, zk.FlagTTL, everybody, time.Minute)
	say("ttl "+path, err)
	path, err = c.CreateProtectedEphemeralSequential("/c/p-", nil, everybody)
	say(fmt.Sprint("protected ", path[len(path)-12:]), err)
	_, stat, changed, err := c.GetW("/a")
	say(fmt.Sprint("get ", stat.Version), err)
	stat, err = c.Set("/a", []byte("2"), 0)
	say(fmt.Sprint("set ", stat.Version), err)
	_, err = c.Set("/a", nil, 7)
	say("set", err)
	say(fmt.Sprint("event ", (<-changed).Type), nil)
	_, stat, listChanged, err := c.ChildrenW("/")
	say(fmt.Sprint("children ", stat.NumChildren), err)
	results, err := c.Multi(
		&zk.CreateRequest{Path: "/m", Acl: everybody}, &zk.SetDataRequest{Path: "/m", Version: 0},
		&zk.CheckVersionRequest{Path: "/m", Version: 1}, &zk.DeleteRequest{Path: "/a", Version: -1})
	say(fmt.Sprint("multi ", len(results), " ", results[0].String), err)
	say(fmt.Sprint("event ", (<-listChanged).Type), nil)
	_, err = c.Multi(&zk.DeleteRequest{Path: "/m", Version: -1}, &zk.CheckVersionRequest{Path: "/none"})
	say("multi", err)
	_, err = c.Sync("/")
	say("sync", err)
	say("auth", c.AddAuth("digest", []byte("me:secret")))
	_, err = c.SetACL("/m", zk.AuthACL(zk.PermAll), -1)
	say("set acl", err)
	list, _, err := c.GetACL("/m")
	say("acl "+list[0].ID[:3], err)
	_, _, err = connect(t, s).Get("/m")
	say("get", err)
	_, err = c.Reconfig(nil, -1)
	say("reconfig", err)

	want := []string{
		"create /a <nil>", "container /c <nil>", "ttl /t <nil>", "protected p-0000000000 <nil>", "get 0 <nil>",
		"set 1 <nil>", "set zk: version conflict", "event EventNodeDataChanged <nil>", "children 4 <nil>",
		"multi 4 /m <nil>", "event EventNodeChildrenChanged <nil>", "multi zk: node does not exist", "sync <nil>",
		"auth <nil>", "set acl <nil>", "acl me: <nil>", "get zk: not authenticated",
		"reconfig " + zk.ErrReconfigDisabled.Error(),
	}
	if !slices.Equal(said, want) {
		t.Errorf("said\n%q\nwant\n%q", said, want)
	}
	if len(e.Names("/c")) != 1 {
		t.Error("the protected node is not there")
	}
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

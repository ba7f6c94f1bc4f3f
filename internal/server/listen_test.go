package server_test

import (
	"context"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

// opens makes a sidecar, as these options say.
func opens(options server.Options) (*server.Server, error) {
	p := &probe{drain: func(context.Context, time.Duration) error { return nil }}
	options.MaxStreams, options.Log, options.Metrics = 1, noLog(), server.NewMetrics()
	return server.New(options, p, p)
}

// at is a sidecar whose callers have this address alone.
func at(address string, mode fs.FileMode) server.Options {
	return server.Options{Listen: []string{address}, SocketMode: mode}
}

// closes ends what opens has made.
func closes(t *testing.T, opened *server.Server) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, opened.Serve(over))
}

func TestAddressesThatAreRefusedSayWhy(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	must(t, os.WriteFile(folder+"/file", []byte("precious"), 0o600))
	for address, want := range map[string]string{
		"0.0.0.0:0":                  "only Unix sockets and loopback",
		"[::]:0":                     "only Unix sockets and loopback",
		":0":                         "only Unix sockets and loopback",
		"192.0.2.1:0":                "only Unix sockets and loopback",
		"example.com:0":              "only Unix sockets and loopback",
		"127.0.0.1":                  "unix:///path, or host:port",
		"unix://relative":            "absolute",
		"unix://" + folder + "/file": "not a socket",
		"unix://" + filepath.Join(folder, strings.Repeat("x", 100)): "at most",
	} {
		_, err := opens(at(address, 0o660))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q in it", address, err, want)
		}
	}
	kept, err := os.ReadFile(folder + "/file")
	must(t, err)
	same(t, "the file in the way", string(kept), "precious")
}

func TestLoopbackAddressesAreServed(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.1.2.3:0"} {
		opened, err := opens(at(address, 0))
		must(t, err)
		served, err := netip.ParseAddrPort(opened.Addresses()[0])
		must(t, err)
		same(t, address+" on loopback", served.Addr().IsLoopback(), true)
		closes(t, opened)
	}
}

func TestOperatorsAndProfilesHaveNarrowerListeners(t *testing.T) {
	t.Parallel()
	for want, options := range map[string]server.Options{
		"--operator-listen 127.0.0.1:0: operators are served on a Unix socket only: unix:///path":   {OperatorListen: "127.0.0.1:0"},
		"--admin-listen 0.0.0.0:0: this listener is for a loopback host:port or a Unix socket only": {AdminListen: "0.0.0.0:0"},
		"--operator-listen unix:///a?b: the path of a Unix socket has no ? in it; callers' sockets alone take ?identity=NAME": {
			OperatorListen: "unix:///a?b",
		},
	} {
		_, err := opens(options)
		same(t, "refused", err, want)
	}
}

func TestASocketHasItsModeAndTakesItselfAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "socket")
	opened, err := opens(at("unix://"+path, 0o600))
	must(t, err)
	socket, err := os.Lstat(path)
	must(t, err)
	same(t, "mode of the socket", socket.Mode(), fs.ModeSocket|0o600)
	directory, err := os.Lstat(filepath.Dir(path))
	must(t, err)
	same(t, "mode of its directory", directory.Mode()&^0o027, fs.ModeDir|0o750&^0o027)
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	same(t, "files beside it", len(entries)-1, 0)

	closes(t, opened)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAStaleSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "socket")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	dead.SetUnlinkOnClose(false)
	must(t, dead.Close())

	live, err := opens(at("unix://"+path, 0o660))
	must(t, err)
	_, err = opens(at("unix://"+path, 0o660))
	same(t, "second listener", err, "--listen unix://"+path+": another process already serves "+path)
	conn, err := net.Dial("unix", path)
	must(t, err)
	must(t, conn.Close())
	closes(t, live)
}

func TestAListenerLeavesASocketThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "socket")
	first, err := opens(at("unix://"+path, 0o660))
	must(t, err)
	must(t, os.Remove(path))
	second, err := opens(at("unix://"+path, 0o660))
	must(t, err)
	closes(t, first)
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the second one's socket: %v", err)
	}
	closes(t, second)
}

func TestAServerThatCannotOpenOneAddressOpensNone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := opens(server.Options{Listen: []string{"unix://" + folder + "/socket", "0.0.0.0:0"}})
	if err == nil || !strings.HasPrefix(err.Error(), "--listen 0.0.0.0:0: ") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(folder + "/socket"); !os.IsNotExist(err) {
		t.Errorf("the other socket: %v", err)
	}
}

func TestCallersOnAUnixSocketAreTheirUserAndOnLoopbackNobodyInParticular(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.Listen = append(o.Listen, "127.0.0.1:0") })
	met := make(chan caller.Caller, 1)
	p.get = func(ctx context.Context) error { met <- caller.Of(ctx); return nil }
	for address, want := range map[string]string{
		p.server.Addresses()[0]: "uid:" + uid() + " operator false",
		p.server.Addresses()[1]: "tcp:loopback operator false",
		p.operators():           "uid:" + uid() + " operator true",
	} {
		_, err := lockv1.NewLockServiceClient(p.dial(address)).Get(within(t), &lockv1.GetRequest{})
		must(t, err)
		same(t, address, described(receive(t, met)), want)
	}
	same(t, "caller of no connection", described(caller.Of(context.Background())), " operator false")
	same(t, "silent", caller.Of(context.Background()).FellSilent(), false)
}

func TestASocketCanHaveAnIdentityOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) {
		folder := filepath.Dir(strings.TrimPrefix(o.Listen[0], "unix://"))
		o.Listen = append(o.Listen, "unix://"+folder+"/app?identity=app", "unix://"+folder+"/web?identity=web-1",
			"unix://"+folder+"/app2?identity=app")
	})
	met := make(chan caller.Caller, 1)
	p.get = func(ctx context.Context) error { met <- caller.Of(ctx); return nil }
	for i, want := range []string{"uid:" + uid(), "socket:app", "socket:web-1", "socket:app"} {
		_, err := lockv1.NewLockServiceClient(p.dial(p.server.Addresses()[i])).Get(within(t), &lockv1.GetRequest{})
		must(t, err)
		same(t, p.server.Addresses()[i], described(receive(t, met)), want+" operator false")
	}
}

func TestIdentitiesOfSocketsThatAreRefusedSayWhy(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:0?identity=app":   "only a Unix socket has an identity",
		"unix:///s?identity=":        `identity is "": a name of 1 to 64`,
		"unix:///s?identity=a/b":     `identity is "a/b": a name of 1 to 64`,
		"unix:///s?identity=a&b=c":   `identity is "a&b=c": a name of 1 to 64`,
		"unix:///s?name=app":         "?name=app: only ?identity=NAME may follow",
		"unix:///s?":                 "only ?identity=NAME may follow",
		"unix:///s?identity=a?":      "a name of 1 to 64",
		"unix:///s?identity=socket:": "a name of 1 to 64",
	} {
		_, err := opens(at(address, 0))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--listen "+address+": ") {
			t.Errorf("%s: %v; want %q in it", address, err, want)
		}
	}
}

func TestASidecarIsForOneCallerIfNobodyElseCanHaveAnotherIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addresses string
		files     server.TLSFiles
		want      bool
	}{
		{"127.0.0.1:1", server.TLSFiles{}, true},
		{"127.0.0.1:1 localhost:2", server.TLSFiles{}, true},
		{"unix:///a?identity=app", server.TLSFiles{}, true},
		{"unix:///a?identity=app unix:///b?identity=app", server.TLSFiles{}, true},
		{"unix:///a?identity=app unix:///b?identity=web", server.TLSFiles{}, false},
		{"unix:///a?identity=app 127.0.0.1:1", server.TLSFiles{}, false},
		{"unix:///a", server.TLSFiles{}, false},
		{"127.0.0.1:1", server.TLSFiles{Certificate: "c"}, false},
		{"", server.TLSFiles{}, false},
	} {
		same(t, c.addresses, server.IsForOne(strings.Fields(c.addresses), c.files), c.want)
	}
}

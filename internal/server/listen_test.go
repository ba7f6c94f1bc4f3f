package server

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
)

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
		"unix://" + folder + "/a?b":  "callers' sockets alone take ?identity=NAME",
		unixScheme + filepath.Join(folder, strings.Repeat("x", 100)): "at most",
	} {
		listener, err := listen(address, 0o660, false)
		if err == nil {
			listener.Close()
			t.Errorf("%s was accepted", address)
			continue
		}
		if !strings.Contains(err.Error(), want) {
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
		listener, err := listen(address, 0, false)
		must(t, err)
		same(t, address+" on loopback", listener.Addr().(*net.TCPAddr).IP.IsLoopback(), true)
		must(t, listener.Close())
	}
}

func TestOperatorsAndProfilesHaveNarrowerListeners(t *testing.T) {
	t.Parallel()
	_, err := listenOperators("127.0.0.1:0")
	same(t, "operators on TCP", err, "operators are served on a Unix socket only: unix:///path")
	_, err = listenLoopback("0.0.0.0:0")
	same(t, "profiles for everybody", err, "this listener is for a loopback host:port or a Unix socket only")
}

func TestASocketHasItsModeAndTakesItselfAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "socket")
	listener, err := listen(unixScheme+path, 0o600, false)
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

	must(t, listener.Close())
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

	live, err := listen(unixScheme+path, 0o660, false)
	must(t, err)
	_, err = listen(unixScheme+path, 0o660, false)
	same(t, "second listener", err, "another process already serves "+path)
	conn, err := net.Dial("unix", path)
	must(t, err)
	must(t, conn.Close())
	must(t, live.Close())
}

func TestAListenerLeavesASocketThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "socket")
	first, err := listen(unixScheme+path, 0o660, false)
	must(t, err)
	must(t, os.Remove(path))
	second, err := listen(unixScheme+path, 0o660, false)
	must(t, err)
	must(t, first.Close())
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the second one's socket: %v", err)
	}
	must(t, second.Close())
}

func TestAServerThatCannotOpenOneAddressOpensNone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := New(Options{
		Listen: []string{unixScheme + folder + "/socket", "0.0.0.0:0"}, MaxStreams: 1, Log: noLog(), Metrics: NewMetrics(),
	}, &probe{}, &probe{})
	if err == nil || !strings.HasPrefix(err.Error(), "--listen 0.0.0.0:0: ") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(folder + "/socket"); !os.IsNotExist(err) {
		t.Errorf("the other socket: %v", err)
	}
}

func TestCallersOnAUnixSocketAreTheirUserAndOnLoopbackNobodyInParticular(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *Options) { o.Listen = append(o.Listen, "127.0.0.1:0") })
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
	p := newProbe(t, func(o *Options) {
		folder := filepath.Dir(strings.TrimPrefix(o.Listen[0], unixScheme))
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
		_, err := New(Options{Listen: []string{address}, MaxStreams: 1, Log: noLog(), Metrics: NewMetrics()}, &probe{}, &probe{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--listen "+address+": ") {
			t.Errorf("%s: %v; want %q in it", address, err, want)
		}
	}
}

func TestASidecarIsForOneCallerIfNobodyElseCanHaveAnotherIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addresses string
		files     TLSFiles
		want      bool
	}{
		{"127.0.0.1:1", TLSFiles{}, true},
		{"127.0.0.1:1 localhost:2", TLSFiles{}, true},
		{"unix:///a?identity=app", TLSFiles{}, true},
		{"unix:///a?identity=app unix:///b?identity=app", TLSFiles{}, true},
		{"unix:///a?identity=app unix:///b?identity=web", TLSFiles{}, false},
		{"unix:///a?identity=app 127.0.0.1:1", TLSFiles{}, false},
		{"unix:///a", TLSFiles{}, false},
		{"127.0.0.1:1", TLSFiles{Certificate: "c"}, false},
		{"", TLSFiles{}, false},
	} {
		same(t, c.addresses, IsForOne(strings.Fields(c.addresses), c.files), c.want)
	}
}

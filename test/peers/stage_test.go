package peers

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// A stage is an ensemble with sidecars.
type stage struct {
	servers   []string
	sidecars  []string // their addresses
	operators string   // where one of them listens for operators

	credentials []string // what ZooKeeper's clients prove themselves with, if anything
}

// on runs a test with a sidecar and its embedded ensemble, and with processes of sidecars and a real ensemble of three.
func on(t *testing.T, test func(t *testing.T, s stage)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
		test(t, stage{servers: []string{sidecar.EnsembleAddress()}, sidecars: []string{sidecar.Address()}, operators: sidecar.Address()})
	})
	t.Run("real", func(t *testing.T) { test(t, realStage(t, 2)) })
}

func realStage(t *testing.T, sidecars int, flags ...string) stage {
	t.Helper()
	s := stage{servers: realEnsemble(t).ClientAddresses()}
	for range sidecars {
		started := startSidecar(t, s.servers, flags...)
		s.sidecars, s.operators = append(s.sidecars, started.address()), started.operators()
	}
	return s
}

// tick makes sessions of the dead expire soon. Servers bear with each other for longer than a busy machine makes them wait.
const (
	tick  = 200 * time.Millisecond
	limit = 50 // ticks
)

// shared is the ensemble that runs: tests share it, and there is never more than one.
var shared *ensemble.Ensemble

func realEnsemble(t *testing.T) *ensemble.Ensemble {
	t.Helper()
	if shared == nil {
		started, err := ensemble.Start(t.Context(), ensemble.Options{
			TickTime: tick, InitLimit: limit, SyncLimit: limit,
			MaxSessionTimeout: 30 * time.Second, ContainerCheck: 500 * time.Millisecond,
		})
		must(t, err)
		shared = started
	}
	return shared
}

func closeShared() {
	if shared != nil {
		shared.Close()
		shared = nil
	}
}

// onBoth runs a test on an embedded ensemble and on a real server, both of which have nothing in them yet.
func onBoth(t *testing.T, test func(t *testing.T, servers string)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, startEmbedded(t)) })
	t.Run("real", func(t *testing.T) { test(t, startReal(t)) })
}

func startEmbedded(t *testing.T) string {
	t.Helper()
	memory := embedded.New(embedded.Options{})
	server, err := embedded.Serve(memory, embedded.ServerOptions{})
	must(t, err)
	t.Cleanup(func() {
		server.Close()
		memory.Close()
	})
	return server.Address()
}

func startReal(t *testing.T) string {
	t.Helper()
	closeShared()
	started, err := ensemble.Start(t.Context(), ensemble.Options{Servers: 1})
	must(t, err)
	t.Cleanup(started.Close)
	return started.ClientAddresses()[0]
}

// joined is the servers as ZooKeeper's clients are told of them.
func (s stage) joined() string { return strings.Join(s.servers, ",") }

// client is a client of the first sidecar.
func (s stage) client(t *testing.T) *sidekeeper.Client { return dial(t, s.sidecars[0]) }

func dial(t *testing.T, address string) *sidekeeper.Client {
	t.Helper()
	client, err := sidekeeper.Dial(address)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// look is a session of the test's own.
func (s stage) look(t *testing.T) *zk.Conn {
	t.Helper()
	session, _, err := zk.Connect(s.servers, 10*time.Second, zk.WithLogger(silence{}))
	must(t, err)
	t.Cleanup(session.Close)
	return session
}

// sessionTimeout is that of all contenders, unless a test waits for sessions to expire.
const sessionTimeout = 20 * time.Second

// contenders starts a program that takes locks with a library.
func (s stage) contenders(t *testing.T, library string) *peer {
	return s.contendersFor(t, library, sessionTimeout)
}

func (s stage) contendersFor(t *testing.T, library string, timeout time.Duration) *peer {
	t.Helper()
	p := startProgram(t, s.command(t, library, timeout))
	mustShareTheClock(t, p)
	return p
}

func (s stage) command(t *testing.T, library string, timeout time.Duration) *exec.Cmd {
	t.Helper()
	switch library {
	case "curator":
		return javaCommand(t, "Contender", append([]string{s.joined(), fmt.Sprint(timeout.Milliseconds())}, s.credentials...)...)
	case "zookeeper":
		classes, err := writeLockClasses()
		must(t, err)
		return javaWith(classes, "-Dlibrary=zookeeper", "Contender", s.joined(), fmt.Sprint(timeout.Milliseconds()))
	case "kazoo":
		return pythonCommand(t, "contender.py", append([]string{s.joined(), fmt.Sprint(timeout.Seconds())}, s.credentials...)...)
	case "go-zookeeper":
		return goCommand(t, library, append([]string{s.joined(), timeout.String()}, s.credentials...)...)
	default:
		return goCommand(t, library, s.sidecars...)
	}
}

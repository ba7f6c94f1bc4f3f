package ensemble

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

func TestAStandaloneServerAnswersAndLeavesNothingBehind(t *testing.T) {
	var log bytes.Buffer
	options := quick
	options.Servers, options.LogTo = 1, &log
	e := start(t, options)
	s := e.Server(1)
	if answer, err := s.Ask(within(t), "ruok"); answer != "imok" || err != nil {
		t.Errorf("ruok: %q, %v", answer, err)
	}
	if got := s.Role(within(t)); got != Standalone {
		t.Errorf("the server is %s", got)
	}
	process := s.ProcessID()
	e.Close()
	e.Close()
	if !isGone(process) {
		t.Error("the process is left")
	}
	if exists(e.directory) {
		t.Error("the directory is left")
	}
	for _, address := range []string{s.Address(), s.RealAddress()} {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Errorf("%s still answers", address)
		}
	}
	if !strings.Contains(log.String(), "server 1: ") {
		t.Error("nothing was logged")
	}
}

func TestAServerThatDoesNotStartIsReportedWithItsLog(t *testing.T) {
	options := quick
	options.JVM = []string{"-XX:+NoSuchFlag"}
	_, err := Start(within(t), options)
	for _, want := range []string{"has ended: exit status 1", "Unrecognized VM option 'NoSuchFlag'"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}

func TestAStartThatIsCancelledLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	started := &firstWrite{then: func() { cancel(errors.New("enough")) }}
	options := quick
	options.LogTo = started
	_, err := Start(ctx, options)
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A firstWrite calls a function when it is first written to.
type firstWrite struct {
	once sync.Once
	then func()
}

func (f *firstWrite) Write(text []byte) (int, error) {
	f.once.Do(f.then)
	return len(text), nil
}

func TestDataAndAddressesOutliveARestart(t *testing.T) {
	options := quick
	options.Servers, options.Dir = 1, t.TempDir()
	options.ClientPorts = []int{0}
	e := start(t, options)
	s, conn := e.Server(1), attach(t, e.Server(1))
	if _, err := conn.Create("/kept", nil, 0, open); err != nil {
		t.Fatal(err)
	}
	s.Freeze()
	s.Stop()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitAll(t, e)
	if found, _, err := attach(t, s).Exists("/kept"); !found || err != nil {
		t.Errorf("exists: %v, %v", found, err)
	}
	e.Close()
	if !exists(s.Log()) {
		t.Error("the directory asked for was removed")
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	options := quick
	options.Servers = 1
	options.MaxClientConnections = 7
	options.MinSessionTimeout, options.MaxSessionTimeout = 300*time.Millisecond, 9*time.Second
	options.Config = []string{"clientPortListenBacklog=77"}
	e := start(t, options)
	answer, err := e.Server(1).Ask(within(t), "conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"tickTime=200\n", "maxClientCnxns=7\n", "minSessionTimeout=300\n", "maxSessionTimeout=9000\n",
		"clientPortListenBacklog=77\n",
	} {
		if !strings.Contains(answer, want) {
			t.Errorf("no %q in:\n%s", want, answer)
		}
	}
}

func TestEmptyContainersAndNodesPastTheirTimeAreDeleted(t *testing.T) {
	options := quick
	options.Servers, options.ContainerCheck = 1, 50*time.Millisecond
	conn := attach(t, start(t, options).Server(1))
	for path, create := range map[string]func(path string) error{
		"/container": func(path string) error {
			_, err := conn.CreateContainer(path, nil, zk.FlagContainer, open)
			return errors.Join(err, createAndDelete(conn, path+"/child"))
		},
		"/mortal": func(path string) error {
			_, err := conn.CreateTTL(path, nil, zk.FlagTTL, open, 100*time.Millisecond)
			return err
		},
	} {
		if err := create(path); err != nil {
			t.Fatal(err)
		}
		awaitDeleted(t, conn, path)
	}
}

func createAndDelete(conn *zk.Conn, path string) error {
	_, err := conn.Create(path, nil, 0, open)
	return errors.Join(err, conn.Delete(path, -1))
}

func awaitDeleted(t *testing.T, conn *zk.Conn, path string) {
	t.Helper()
	found, _, deleted, err := conn.ExistsW(path)
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return
	}
	select {
	case <-deleted:
	case <-time.After(limit):
		t.Fatalf("%s is still there", path)
	}
}

func TestRequestsThroughAClientLinkCanBeCutAndAreCounted(t *testing.T) {
	options := quick
	options.Servers = 1
	e := start(t, options)
	s, conn := e.Server(1), attach(t, e.Server(1))
	s.ClientLink().ResetRequests()
	trap := s.ClientLink().CutReply(link.Is(link.Create), 1)
	if _, err := conn.Create("/ghost", nil, 0, open); err == nil {
		t.Error("the client has learnt of its node")
	}
	if found, _, err := attach(t, s).Exists("/ghost"); !found || err != nil {
		t.Errorf("exists: %v, %v", found, err)
	}
	counted := s.ClientLink().Requests()
	if trap.Count() != 1 || counted[link.Create] != 1 || counted[link.Exists] != 1 {
		t.Errorf("sprung %d times, counted %v", trap.Count(), counted)
	}
}

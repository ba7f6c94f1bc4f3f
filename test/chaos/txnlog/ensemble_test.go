package txnlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/full"
)

const patient = time.Minute

// A stage is an ensemble with what the tests do to it.
type stage struct {
	*testing.T
	*ensemble.Ensemble

	home string
}

func start(t *testing.T) *stage {
	t.Helper()
	full.Needs(t, "an ensemble")
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	home := t.TempDir()
	e, err := ensemble.Start(ctx, ensemble.Options{
		TickTime: 200 * time.Millisecond, SyncLimit: 25, Dir: home,
		ContainerCheck: 300 * time.Millisecond, MaxSessionTimeout: 30 * time.Second,
	})
	must(t, err)
	t.Cleanup(e.Close)
	return &stage{t, e, home}
}

// directories are the servers' data directories.
func (s *stage) directories() []string {
	var all []string
	for _, server := range s.Servers() {
		all = append(all, filepath.Join(s.home, fmt.Sprintf("server-%d", server.ID())))
	}
	return all
}

func (s *stage) connect(timeout time.Duration, servers ...string) *zk.Conn {
	s.Helper()
	conn, events, err := zk.Connect(servers, timeout, zk.WithLogger(quiet{}))
	must(s.T, err)
	s.Cleanup(conn.Close)
	for event := range events {
		if event.State == zk.StateHasSession {
			return conn
		}
	}
	s.Fatal("no session")
	return nil
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// healed waits until all servers serve.
func (s *stage) healed() {
	s.Helper()
	s.Heal()
	ctx, cancel := context.WithTimeout(s.Context(), patient)
	defer cancel()
	must(s.T, s.AwaitAll(ctx))
}

var open = zk.WorldACL(zk.PermAll)

// doEverything leaves one of each type of transaction in the logs.
func (s *stage) doEverything(conn *zk.Conn) {
	s.Helper()
	create := func(path, data string, flags int32) {
		_, err := conn.Create(path, []byte(data), flags, open)
		must(s.T, err)
	}
	create("/t", "", 0)
	create("/t/stays", "one", 0)
	create("/t/goes", "x", 0)
	create("/t/owned", "o", zk.FlagEphemeral)
	create("/t/n-", "n", zk.FlagEphemeral|zk.FlagSequence)
	_, err := conn.CreateContainer("/t/container", nil, zk.FlagContainer, open)
	must(s.T, err)
	create("/t/container/child", "c", 0)
	must(s.T, conn.Delete("/t/container/child", -1))
	_, err = conn.CreateTTL("/t/ttl", []byte("t"), zk.FlagTTL, open, 10*time.Millisecond)
	must(s.T, err)
	_, err = conn.Set("/t/stays", []byte("two"), 0)
	must(s.T, err)
	_, err = conn.SetACL("/t/stays", open, -1)
	must(s.T, err)
	must(s.T, conn.Delete("/t/goes", -1))
	create("/t/goes", "again", 0)
	_, err = conn.Create("/t/goes", nil, 0, open)
	if !errors.Is(err, zk.ErrNodeExists) {
		s.Error(err)
	}
	_, err = conn.Multi(
		&zk.CreateRequest{Path: "/t/multi", Data: []byte("m"), Acl: open},
		&zk.CheckVersionRequest{Path: "/t/stays", Version: 1},
		&zk.SetDataRequest{Path: "/t/stays", Data: []byte("three"), Version: 1},
	)
	must(s.T, err)
	_, err = conn.Multi(
		&zk.CreateRequest{Path: "/t/never", Data: []byte("m"), Acl: open},
		&zk.CheckVersionRequest{Path: "/t/stays", Version: 77},
		&zk.DeleteRequest{Path: "/t/multi", Version: -1},
	)
	if !errors.Is(err, zk.ErrBadVersion) {
		s.Error(err)
	}
}

// awaitGone waits until a node is not there any more.
func (s *stage) awaitGone(conn *zk.Conn, path string) {
	s.Helper()
	deadline := time.NewTimer(patient)
	defer deadline.Stop()
	for {
		there, _, changed, err := conn.ExistsW(path)
		if err == nil && !there {
			return
		}
		select {
		case <-changed: // nil after an error
		case <-time.After(50 * time.Millisecond):
		case <-deadline.C:
			s.Fatalf("%s is still there: %v", path, err)
		}
	}
}

// TestTheLogsOfARealEnsembleAreReadAsItReadsThemItself does one thing after another to one ensemble.
func TestTheLogsOfARealEnsembleAreReadAsItReadsThemItself(t *testing.T) {
	s := start(t)
	conn := s.connect(20*time.Second, s.ClientAddresses()...)
	s.doEverything(conn)
	for _, path := range []string{"/t/container", "/t/ttl"} {
		s.awaitGone(conn, path)
	}
	expired, closed := s.leave(conn)
	s.changeLeaders(conn)
	s.compareWithZooKeeper()

	l, err := Read(0, s.directories()...)
	must(t, err)
	if len(l.Faults) > 0 || len(l.Gaps) > 0 {
		t.Errorf("faults %q, gaps %q", l.Faults, l.Gaps)
	}
	s.compareWithTree(l)
	for _, life := range l.Lives() {
		switch {
		case life.Owner == expired && !life.Expired, life.Owner == closed && (life.Expired || life.GoneBy != closed):
			t.Errorf("%s of session %#x: %+v", life.Path, life.Owner, life)
		case strings.HasPrefix(life.Path, "/t/never"):
			t.Errorf("%s was never made", life.Path)
		}
	}
}

// leave has one session expire and another be closed, each with a node.
func (s *stage) leave(watcher *zk.Conn) (expired, closed int64) {
	s.Helper()
	silent := s.connect(time.Second, s.Server(1).Address())
	_, err := silent.Create("/t/silent", nil, zk.FlagEphemeral, open)
	must(s.T, err)
	polite := s.connect(20*time.Second, s.Server(2).Address())
	_, err = polite.Create("/t/polite", nil, zk.FlagEphemeral, open)
	must(s.T, err)
	expired, closed = silent.SessionID(), polite.SessionID()
	polite.Close()
	s.Server(1).ClientLink().Drop()
	s.awaitGone(watcher, "/t/silent")
	s.Server(1).ClientLink().Heal()
	return expired, closed
}

// changeLeaders kills a leader, and cuts another off while it is written to, so that it logs what is never agreed on.
func (s *stage) changeLeaders(conn *zk.Conn) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*patient)
	defer cancel()
	leader, err := s.AwaitQuorum(ctx)
	must(s.T, err)
	leader.Kill()
	s.write(conn, "/t/killed")
	must(s.T, leader.Restart())
	s.healed()
	leader, err = s.AwaitQuorum(ctx)
	must(s.T, err)
	attached := s.connect(20*time.Second, leader.Address())
	s.Isolate(leader.ID())
	written := make(chan error, 1)
	go func() {
		_, err := attached.Create("/t/unheard", nil, 0, open)
		written <- err
	}()
	s.write(conn, "/t/isolated")
	s.healed()
	<-written
	s.write(conn, "/t/last")
}

// write creates a node, as often as it takes.
func (s *stage) write(conn *zk.Conn, path string) {
	s.Helper()
	deadline := time.Now().Add(patient)
	for {
		_, err := conn.Create(path, nil, 0, open)
		if err == nil || errors.Is(err, zk.ErrNodeExists) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatal(err)
		}
	}
}

// compareWithZooKeeper has each server's log read by ZooKeeper's own classes.
func (s *stage) compareWithZooKeeper() {
	s.Helper()
	for _, directory := range s.directories() {
		theirs := s.readByZooKeeper(directory)
		transactions, err := readServer(0, directory)
		must(s.T, err)
		var ours strings.Builder
		for _, t := range transactions {
			fmt.Fprintf(&ours, "%x %x %d %d: %s\n", t.Zxid, uint64(t.Session), t.Cxid, t.Time.Sub(time.UnixMilli(0)).Milliseconds(), told(t))
		}
		if different := cmp.Diff(strings.Split(theirs, "\n"), strings.Split(ours.String(), "\n")); different != "" || theirs == "" {
			s.Errorf("%s: %s", directory, different)
		}
		s.Logf("%s: %d transactions", filepath.Base(directory), len(transactions))
	}
}

func (s *stage) readByZooKeeper(directory string) string {
	s.Helper()
	var complaints bytes.Buffer
	command := s.Java(s.Context(), filepath.Join("testdata", "Entries.java"), directory)
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		s.Fatalf("%v: %s", err, &complaints)
	}
	return string(output)
}

// compareWithTree compares the nodes that live with those that are there.
func (s *stage) compareWithTree(l *Log) {
	s.Helper()
	standing := map[string]string{}
	for _, life := range l.Lives() {
		if strings.HasPrefix(life.Path, "/t") && !life.Gone.Happened() {
			last := life.Writes[len(life.Writes)-1]
			standing[life.Path] = fmt.Sprintf("%s czxid %x mzxid %x version %d owner %x",
				last.Data, life.Made.Zxid, last.Zxid, last.Version, life.Owner)
		}
	}
	there := map[string]string{}
	s.walk(s.connect(20*time.Second, s.ClientAddresses()...), "/t", there)
	if different := cmp.Diff(there, standing); different != "" {
		s.Error(different)
	}
}

func (s *stage) walk(conn *zk.Conn, path string, found map[string]string) {
	s.Helper()
	data, stat, err := conn.Get(path)
	must(s.T, err)
	found[path] = fmt.Sprintf("%s czxid %x mzxid %x version %d owner %x", data, stat.Czxid, stat.Mzxid, stat.Version, stat.EphemeralOwner)
	children, _, err := conn.Children(path)
	must(s.T, err)
	for _, child := range children {
		s.walk(conn, path+"/"+child, found)
	}
}

// Logs are read again and again while the servers write them: each time more of them, and never anything else.
func TestLogsAreReadWhileTheyAreWritten(t *testing.T) {
	s := start(t)
	conn := s.connect(20*time.Second, s.ClientAddresses()...)
	_, err := conn.Create("/busy", nil, 0, open)
	must(t, err)
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for i := range 1500 {
			conn.Set("/busy", fmt.Appendf(nil, "%0*d", 1+i%700, i), -1) // one that fails is logged or not
		}
	}()
	var last *Log
	reads := 0
	for busy := true; busy; reads++ {
		select {
		case _, busy = <-writing:
		default:
		}
		l, err := Read(0, s.directories()...)
		must(t, err)
		if len(l.Faults) > 0 || len(l.Gaps) > 0 || last != nil && l.Last() < last.Last() {
			t.Fatalf("faults %q, gaps %q, %#x after %#x", l.Faults, l.Gaps, l.Last(), last.Last())
		}
		last = l
	}
	if reads < 3 || len(last.Transactions) < 300 {
		t.Fatalf("%d reads, %d transactions", reads, len(last.Transactions))
	}
	end, err := Read(last.Last()-10, s.directories()...)
	must(t, err)
	if zxids(end.Transactions) != zxids(last.Transactions[len(last.Transactions)-10:]) {
		t.Errorf("the last ten are%s", zxids(end.Transactions))
	}
}

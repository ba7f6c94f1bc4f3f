package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// showFiles is a command that shows the files of a folder with their content, in a line.
const showFiles = `cd "$SIDEKEEPER_CONFIG_FOLDER/..data" && echo $SIDEKEEPER_CONFIG_PREFIX: ` +
	`$(find . -type f | sort | while read file; do echo ${file#./}=$(cat "$file"); done)`

// awaitLine reads lines until there is this one: a command may also run for what came before.
func (p *program) awaitLine(t *testing.T, want string) {
	t.Helper()
	for line := ""; line != want; {
		if line = receive(t, p.lines); line == "" {
			t.Fatalf("ended before it said %s; stderr: %s", want, p.stderr)
		}
	}
}

func TestSyncKeepsAFolderEqualToAPrefix(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	s.put("app/host", "db1")
	s.put("apple", "not below app")
	where := filepath.Join(t.TempDir(), "folder")
	p, stop := s.launch("sync", "app", where, "--mode", "0600", "--exec", showFiles)
	p.wantLine(t, "app: host=db1")
	s.put("app/host", "db2")
	p.wantLine(t, "app: host=db2")
	s.put("app/host/port", "5432") // host is a folder now, too
	p.awaitLine(t, "app: host/%value=db2 host/port=5432")
	s.remove("app/host/port")
	p.awaitLine(t, "app: host=db2")
	s.remove("app/host")
	p.awaitLine(t, "app:")
	s.put("app/host", "db3")
	p.awaitLine(t, "app: host=db3")

	s.sidecar.Suspend(time.Hour)
	p.awaitSaid(t, "no contact: the files stay as they are")
	if value, err := os.ReadFile(filepath.Join(where, "host")); string(value) != "db3" {
		t.Error(string(value), err)
	}
	s.sidecar.Suspend(0)
	p.awaitSaid(t, "contact is back")
	s.put("app/host", "db4")
	p.awaitLine(t, "app: host=db4")
	stop()
	p.want(t, 0)
	if got := present(t, where); got != "..data ..sidekeeper STATE host" {
		t.Error(got)
	}
}

// awaitSaid waits until it has been said on stderr.
func (p *program) awaitSaid(t *testing.T, words string) {
	t.Helper()
	for late := time.After(patience); !strings.Contains(p.stderr.String(), words); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			t.Fatalf("%q is not said; stderr: %s", words, p.stderr)
		}
	}
}

func TestSyncOnceEndsWithTheCommandsCode(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	s.put("app", "of the prefix")
	where := filepath.Join(t.TempDir(), "folder")
	s.wants(3, "app: %value=of the prefix\n", "sync", "app", where, "--once", "--exec", showFiles+"; exit 3")
	s.wants(0, "", "sync", "app", where, "--once")
	s.wants(64, "sidekeeper: "+where+` holds the files of prefix "app": choose another folder for "other"`+"\n",
		"sync", "other", where, "--once")
	stdout, stderr, code := output(t, "--address", "/nonexistent", "--timeout", "3s", "config", "sync", "app", where, "--once")
	if want := "sidekeeper: ended before there was a complete state, see --timeout\n"; code != 69 || stdout != "" ||
		!strings.HasPrefix(stderr, "sidekeeper: cannot reach the sidecar at /nonexistent: ") || !strings.HasSuffix(stderr, want) {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}

func TestSyncSendsASignalAfterEachChange(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGUSR1)
	defer signal.Stop(signals)
	process := filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(process, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	where := t.TempDir()
	p, stop := s.launch("sync", "app", where, "--signal", process+":SIGUSR1")
	receive(t, signals)
	s.put("app/host", "db1")
	receive(t, signals)
	if value, err := os.ReadFile(filepath.Join(where, "host")); string(value) != "db1" {
		t.Error(string(value), err)
	}
	if err := os.WriteFile(process, []byte("none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.put("app/host", "db2")
	p.awaitSaid(t, `sidekeeper: --signal: "none" is not a process ID`)
	stop()
	p.want(t, 0)
	s.wants(0, "", "sync", "app", where, "--once", "--signal", strconv.Itoa(os.Getpid())+":usr1")
	receive(t, signals)
}

func TestSyncGoesOnWhenItsSidecarIsBack(t *testing.T) {
	t.Parallel()
	_, ensemble := memoryEnsemble(t)
	folder, err := os.MkdirTemp("", "sidekeeper") // not t.TempDir: a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "socket")
	first, second := serve(t, "--zookeeper="+ensemble, "--listen=unix://"+socket), serve(t, "--zookeeper="+ensemble)
	client, err := sidekeeper.Dial(second.address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	put := func(key, value string) {
		t.Helper()
		if _, err := client.Config().Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	put("app/a", "1")
	p, stop := launchConfig(t, socket, "sync", "app", t.TempDir(), "--exec", showFiles)
	p.wantLine(t, "app: a=1")
	if err := first.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.ends()
	p.awaitSaid(t, "no contact: the files stay as they are")
	put("app/a", "2")
	put("app/b", "2")
	serve(t, "--zookeeper="+ensemble, "--listen=unix://"+socket)
	p.wantLine(t, "app: a=2 b=2")
	stop()
	p.want(t, 0)
}

func TestACommandThatFailedRunsAgainAfterAWhileWithoutAChange(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	s.put("app/a", "1")
	runs := filepath.Join(t.TempDir(), "runs")
	p, stop := s.launch("sync", "app", t.TempDir(), "--retry", "10ms",
		"--exec", "echo >>"+runs+"; test $(wc -l <"+runs+") = 3 || exit 3; "+showFiles)
	p.wantLine(t, "app: a=1")
	p.awaitSaid(t, "the command exited with 3; it runs again in 10ms")
	stop()
	p.want(t, 0)
	if ran, err := os.ReadFile(runs); err != nil || len(ran) != 3 {
		t.Errorf("%d runs, %v", len(ran), err)
	}
}

// commitTogether writes keys that belong together, and says whether the test goes on.
func (s *configScene) commitTogether(number int) bool {
	var all sidekeeper.Commit
	for _, name := range []string{"a", "b/c", "d"} {
		all.Put("app/"+name, []byte(strconv.Itoa(number)))
	}
	_, err := s.config.Commit(s.t.Context(), &all)
	if err != nil && s.t.Context().Err() == nil {
		s.t.Error(err)
	}
	return err == nil
}

// Whatever a commit writes is seen together, also when the process that writes the files is killed and started again.
func TestReadersNeverSeeAMixOfTwoStates(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	ctx, enough := context.WithCancel(t.Context())
	written := make(chan int)
	go func() {
		defer close(written)
		for number := 0; ; number++ {
			if !s.commitTogether(number) {
				return
			}
			select {
			case <-ctx.Done():
				written <- number
				return
			case <-time.After(rand.N(40 * time.Millisecond)): // commits at all kinds of distances
			}
		}
	}()
	t.Cleanup(func() {
		enough()
		for range written { // until its end
		}
	})
	where := t.TempDir()
	var reader stateReader
	kept, told := startSync(t, s.sidecar.Address(), where)
	for range 8 {
		reader.awaitStates(t, where, 1+rand.IntN(4))
		if err := kept.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		kept.Wait()
		reader.awaitStates(t, where, 0)
		kept, told = startSync(t, s.sidecar.Address(), where)
	}
	enough()
	for last := strconv.Itoa(receive(t, written)); reader.last != last; {
		reader.awaitStates(t, where, 0)
	}
	if line, err := told.ReadString('\n'); err != nil { // it is there, and heeds signals
		t.Fatal(line, err)
	}
	if err := kept.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := kept.Wait(); err != nil {
		t.Error(err)
	}
	if got := present(t, where); got != "..data ..sidekeeper STATE a b d" {
		t.Error(got)
	}
	t.Logf("%d states in %d looks", reader.states, reader.looks)
}

// startSync starts a sync in a process of its own, and tells what its command says.
func startSync(t *testing.T, address, where string) (process *exec.Cmd, told *bufio.Reader) {
	t.Helper()
	process = exec.Command(os.Args[0], "--address", address, "config", "sync", "app", where, "--exec", "echo written")
	process.Env = append(os.Environ(), role+"=sidekeeper")
	process.Stderr = os.Stderr
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Process.Kill() })
	return process, bufio.NewReader(output)
}

// A stateReader reads a folder as a program does that wants one state.
type stateReader struct {
	last          string
	states, looks int
}

// awaitStates looks until there have been so many new states, and at least once if there is any.
func (r *stateReader) awaitStates(t *testing.T, where string, more int) {
	t.Helper()
	for until, late := r.states+more, time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		state, err := readState(filepath.Join(where, "..data"))
		switch {
		case errors.Is(err, fs.ErrNotExist) && time.Now().Before(late): // none yet, or it was removed meanwhile
			continue
		case err != nil || time.Now().After(late):
			t.Fatalf("%v; %d states", err, r.states)
		}
		r.looks++
		if state != r.last {
			r.last = state
			r.states++
		}
		if r.states >= until {
			return
		}
	}
}

func readState(where string) (string, error) {
	root, err := os.OpenRoot(where)
	if err != nil {
		return "", err
	}
	defer root.Close()
	first := ""
	for _, name := range []string{"a", "b/c", "d"} {
		value, err := root.ReadFile(name)
		switch {
		case err != nil:
			return "", err
		case name == "a":
			first = string(value)
		case string(value) != first:
			return "", fmt.Errorf("a is %s and %s is %s", first, name, value)
		}
	}
	return first, nil
}

// present are the names at the top of a folder; states count, but their names do not.
func present(t *testing.T, where string) string {
	t.Helper()
	listed, err := os.ReadDir(where)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range listed {
		name := entry.Name()
		if strings.HasPrefix(name, "..2") {
			name = "STATE"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

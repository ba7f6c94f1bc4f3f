package peers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/toolchain"
)

// A sidecar is a process of ours.
type sidecar struct {
	command *exec.Cmd
	folder  string
	killed  bool
}

// programs is where what the tests run is built, once.
var programs = func() string {
	if os.Getenv(libraryVariable) != "" {
		return ""
	}
	folder, err := os.MkdirTemp("", "sidekeeper-peers-")
	if err != nil {
		panic(err)
	}
	return folder
}()

// sidekeeperProgram is built to look for races if the tests do.
var sidekeeperProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "sidekeeper")
	command := []string{"github.com/sidekeeper/sidekeeper/cmd/sidekeeper"}
	if raced {
		command = append([]string{"-race"}, command...)
	}
	return path, toolchain.Build(context.Background(), path, command...)
})

// startSidecar returns when the sidecar reaches the ensemble. Flags given later count.
func startSidecar(t *testing.T, servers []string, flags ...string) *sidecar {
	t.Helper()
	program, err := sidekeeperProgram()
	must(t, err)
	s := &sidecar{}
	s.folder, err = os.MkdirTemp("", "sidecar-")
	must(t, err)
	log, err := os.Create(filepath.Join(s.folder, "log"))
	must(t, err)
	defer log.Close()
	s.command = exec.Command(program, append([]string{
		"serve", "--zookeeper=" + strings.Join(servers, ","), "--tick-time=" + tick.String(), "--sync-limit=" + strconv.Itoa(limit),
		"--session-timeout=" + sessionTimeout.String(),
		"--listen=" + s.address(), "--operator-listen=" + s.operators(), "--drain-timeout=1s", "--log-level=warn",
	}, flags...)...)
	s.command.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	s.command.Stderr = log
	s.command.SysProcAttr = attributes()
	must(t, s.command.Start())
	t.Cleanup(func() { s.stop(t) })
	s.awaitReady(t)
	return s
}

func (s *sidecar) address() string   { return "unix://" + filepath.Join(s.folder, "callers") }
func (s *sidecar) operators() string { return "unix://" + filepath.Join(s.folder, "operators") }

func (s *sidecar) awaitReady(t *testing.T) {
	t.Helper()
	client := dial(t, s.address())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if ready, err := client.Ready(ctx); err == nil && ready {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the sidecar is not ready:\n%s", s.log())
		}
	}
}

func (s *sidecar) kill() {
	s.killed = true
	_ = s.command.Process.Kill()
}

// stop fails the test if the sidecar does not end well.
func (s *sidecar) stop(t *testing.T) {
	t.Helper()
	defer os.RemoveAll(s.folder)
	_ = s.command.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(patience, func() { _ = s.command.Process.Kill() })
	defer late.Stop()
	if err := s.command.Wait(); err != nil && !s.killed || t.Failed() || strings.Contains(s.log(), "DATA RACE") {
		text := s.log()
		t.Errorf("the sidecar ended with %v; it said last:\n%s", err, text[max(0, len(text)-2<<10):])
	}
}

func (s *sidecar) log() string {
	text, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	return string(text)
}

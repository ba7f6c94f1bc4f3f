package endtoend

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/mutants"
	"github.com/sidekeeper/sidekeeper/test/support/toolchain"
)

// programs is where what the tests run is built, once.
var programs = func() string {
	if os.Getenv(callerVariable) != "" {
		return ""
	}
	folder, err := os.MkdirTemp("", "sidekeeper-programs-")
	if err != nil {
		panic(err)
	}
	return folder
}()

var (
	sidekeeper = sync.OnceValues(func() (string, error) { return build("sidekeeper", ours) })
	mutant     = sync.OnceValues(func() (string, error) {
		trusting, err := mutants.Find("V1")
		if err != nil {
			return "", err
		}
		overlay, err := trusting.Overlay(programs)
		if err != nil {
			return "", err
		}
		return build("mutant", "-overlay="+overlay, ours)
	})
	grpcurl = sync.OnceValues(func() (string, error) {
		return build("grpcurl", "-modfile=../../tools/grpcurl/go.mod", "github.com/fullstorydev/grpcurl/cmd/grpcurl")
	})
)

const ours = "github.com/sidekeeper/sidekeeper/cmd/sidekeeper"

// build builds a program; one of ours looks for races if the tests do.
func build(name string, arguments ...string) (path string, err error) {
	path = filepath.Join(programs, name)
	if raced && arguments[len(arguments)-1] == ours {
		arguments = append([]string{"-race"}, arguments...)
	}
	return path, toolchain.Build(context.Background(), path, arguments...)
}

// A process is a program that runs until it ends or the test does.
type process struct {
	command *exec.Cmd
	lines   *record[string] // of its output
	exited  chan struct{}
}

// start starts a program. What it says on standard error goes to a file of that name, shown if the test fails.
func start(t *testing.T, errors string, command *exec.Cmd) *process {
	t.Helper()
	out, err := command.StdoutPipe()
	must(t, err)
	log, err := os.OpenFile(errors, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	defer log.Close()
	command.Stderr = log
	command.SysProcAttr = attributes()
	if command.Env == nil {
		command.Env = os.Environ()
	}
	command.Env = append(command.Env, "GORACE=atexit_sleep_ms=0")
	must(t, command.Start())
	p := &process{command: command, lines: newRecord[string](), exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines.add(scanner.Text())
		}
		p.lines.end()
		_ = p.command.Wait() // its end is in ProcessState
	}()
	t.Cleanup(func() {
		p.kill()
		show(t, errors)
	})
	return p
}

// show shows the end of a log if the test has failed, and fails it if a race was found.
func show(t *testing.T, log string) {
	t.Helper()
	text, err := os.ReadFile(log)
	must(t, err)
	if strings.Contains(string(text), "DATA RACE") || strings.Contains(string(text), "panic:") {
		t.Errorf("%s:\n%s", filepath.Base(log), text)
	} else if t.Failed() && len(text) > 0 {
		t.Logf("%s ends:\n%s", filepath.Base(log), text[max(0, len(text)-4<<10):])
	}
}

func (p *process) signal(signal syscall.Signal) { _ = p.command.Process.Signal(signal) }

// kill ends the process at once, and returns when it has ended.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// freeze returns when the process has stopped.
func (p *process) freeze() {
	p.signal(syscall.SIGSTOP)
	awaitStopped(p.command.Process.Pid)
}

func (p *process) thaw() { p.signal(syscall.SIGCONT) }

// awaitExit returns the process's exit code.
func (p *process) awaitExit(t *testing.T, patience time.Duration) int {
	t.Helper()
	await(t, "the end of the process", patience, p.exited)
	return p.command.ProcessState.ExitCode()
}

// awaitLine waits for a line that begins so and returns the rest of it, and when it came.
func (p *process) awaitLine(t *testing.T, beginning string, patience time.Duration) (rest string, at moment) {
	t.Helper()
	line := p.lines.await(t, beginning, patience, func(line string) bool { return strings.HasPrefix(line, beginning) })
	return strings.TrimSpace(strings.TrimPrefix(line.what, beginning)), line.at
}

package configsync

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

// stopTimeout is how long a command that was started because of a change gets to end when sidekeeper ends.
const stopTimeout = 10 * time.Second

// A rerunner runs a shell command again and again: one run at a time, and each with what is newest when it begins.
type rerunner struct {
	command        string
	next           func() run // what the run is about that begins now
	stdout, stderr io.Writer
	say            func(string, ...any)
	wake           chan struct{}
	retry          time.Duration // after which a command that failed runs again; 0 with the next change
}

// A run is one run of a command: its environment besides this process's, and its input.
type run struct {
	environment []string
	stdin       []byte
}

func (s *Sidecar) newRerunner(command string, next func() run) *rerunner {
	return &rerunner{
		command: command, next: next, stdout: s.Stdout, stderr: s.Stderr, say: show.Notes(s.Notes), wake: make(chan struct{}, 1),
	}
}

// again has the command run once more, after the present run if there is one.
func (r *rerunner) again() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run runs the command as often as it is asked to, until ctx ends. A command that fails is told and does not end it; one
// that cannot be run at all does.
func (r *rerunner) run(ctx context.Context) error {
	var again <-chan time.Time
	for {
		select {
		case <-r.wake:
		case <-again:
		case <-ctx.Done():
			return nil
		}
		again = nil
		code, err := r.once(ctx)
		switch {
		case err != nil:
			return err
		case ctx.Err() == nil && code != 0 && r.retry > 0:
			again = time.After(r.retry)
			r.say("the command exited with %d; it runs again in %v", code, r.retry)
		case ctx.Err() == nil && code != 0:
			r.say("the command exited with %d; it runs again with the next change", code)
		}
	}
}

// once runs the command and returns its exit code. When ctx ends the command gets SIGTERM, and SIGKILL if it takes its time.
func (r *rerunner) once(ctx context.Context) (code int, err error) {
	next := r.next()
	shell := []string{"/bin/sh", "-c", r.command}
	child, err := supervise.Start(supervise.Task{
		Argv: shell, Environment: append(os.Environ(), next.environment...),
		Stdin: bytes.NewReader(next.stdin), Stdout: r.stdout, Stderr: r.stderr,
	})
	if err != nil {
		return 0, exit.NotStarted(err)
	}
	var late <-chan time.Time
	for done := ctx.Done(); ; {
		select {
		case <-child.Exited:
			return child.ExitCode(), nil
		case <-done:
			done, late = nil, time.After(stopTimeout)
			child.Signal(syscall.SIGTERM)
		case <-late:
			child.Kill(supervise.KillTime)
		}
	}
}

// A signalTarget sends a signal to a process after each change.
type signalTarget struct {
	process string // a number, or a file that holds it
	number  syscall.Signal
}

// parseSignal understands PID, PID:SIGNAL, and a file instead of the PID.
func parseSignal(text string) (signalTarget, error) {
	process, name := text, "HUP"
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 {
		process, name = text[:colon], text[colon+1:]
	}
	number := signalNumber("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	if process == "" || number == 0 {
		return signalTarget{}, fmt.Errorf("--signal %s: expected PID:SIGNAL such as 4711:SIGHUP, or the path of a file with the PID", text)
	}
	s := signalTarget{process, number}
	if _, err := s.pid(); err != nil && isNumber(process) {
		return signalTarget{}, err
	}
	return s, nil
}

func isNumber(text string) bool { return strings.Trim(text, "-0123456789") == "" }

// pid is the process's number now. Numbers that mean a group, or this process's own, are none.
func (s signalTarget) pid() (int, error) {
	text := s.process
	if !isNumber(text) {
		content, err := os.ReadFile(text) //nolint:gosec // the user's choice
		if err != nil {
			return 0, err
		}
		text = strings.TrimSpace(string(content))
	}
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("--signal: %q is not a process ID", text)
	}
	return pid, nil
}

func (s signalTarget) send() error {
	pid, err := s.pid()
	if err != nil {
		return err
	}
	return sendSignal(pid, s.number)
}

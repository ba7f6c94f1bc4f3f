package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endTime is how long a command that was started because of a change gets to end when sidekeeper ends.
const endTime = 10 * time.Second

// A rerunner runs a shell command again and again: one run at a time, and each with what is newest when it begins.
type rerunner struct {
	command        string
	next           func() commandRun // what the run is about that begins now
	stdout, stderr io.Writer
	say            func(string, ...any)
	wake           chan struct{}
}

// A commandRun is one run of a command: its environment besides this process's, and its input.
type commandRun struct {
	environment []string
	stdin       []byte
}

func newRerunner(command string, stdout, stderr io.Writer, next func() commandRun) *rerunner {
	return &rerunner{
		command: command, next: next, stdout: stdout, stderr: stderr, say: sayTo(stderr), wake: make(chan struct{}, 1),
	}
}

// sayTo tells people something in a line of its own.
func sayTo(stderr io.Writer) func(string, ...any) {
	return func(format string, words ...any) {
		_, _ = fmt.Fprintf(stderr, "sidekeeper: "+format+"\n", words...) // nobody may be reading
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
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return nil
		}
		code, err := r.once(ctx)
		switch {
		case err != nil:
			return err
		case ctx.Err() == nil && code != 0:
			r.say("the command exited with %d; it runs again with the next change", code)
		}
	}
}

// once runs the command and returns its exit code. When ctx ends the command gets SIGTERM, and SIGKILL if it takes its time.
func (r *rerunner) once(ctx context.Context) (code int, err error) {
	next := r.next()
	shell := []string{"/bin/sh", "-c", r.command}
	child, err := startChild(task{
		argv: shell, environment: append(os.Environ(), next.environment...),
		stdin: bytes.NewReader(next.stdin), stdout: r.stdout, stderr: r.stderr, until: forever,
	})
	if err != nil {
		return 0, exitError{exitNoCommand, err}
	}
	var late <-chan time.Time
	for done := ctx.Done(); ; {
		select {
		case <-child.exited:
			return child.exitCode(), nil
		case <-done:
			done, late = nil, time.After(endTime)
			child.signal(syscall.SIGTERM)
		case <-late:
			child.kill(killTime)
		}
	}
}

// A signaller sends a signal to a process after each change.
type signaller struct {
	process string // a number, or a file that holds it
	number  syscall.Signal
}

// parseSignal understands PID, PID:SIGNAL, and a file instead of the PID.
func parseSignal(text string) (signaller, error) {
	process, name := text, "HUP"
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 {
		process, name = text[:colon], text[colon+1:]
	}
	number := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	if process == "" || number == 0 {
		return signaller{}, fmt.Errorf("--signal %s: say it like 4711:SIGHUP, or with the path of a file that holds the number", text)
	}
	s := signaller{process, number}
	if _, err := s.pid(); err != nil && isNumber(process) {
		return signaller{}, err
	}
	return s, nil
}

func isNumber(text string) bool { return strings.Trim(text, "-0123456789") == "" }

// pid is the process's number now. Numbers that mean a group, or this process's own, are none.
func (s signaller) pid() (int, error) {
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
		return 0, fmt.Errorf("--signal: %q is not the number of a process", text)
	}
	return pid, nil
}

func (s signaller) send() error {
	pid, err := s.pid()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, s.number); errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("there is no process %d to send %s to", pid, unix.SignalName(s.number))
	} else if err != nil {
		return fmt.Errorf("send %s to process %d: %w", unix.SignalName(s.number), pid, err)
	}
	return nil
}

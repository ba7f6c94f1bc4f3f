package peers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// A peer is a program in a process of its own that uses one client library and does with it what it is told, a line at a
// time; testdata/curator/…/Contender.java says what contenders are told.
type peer struct {
	command *exec.Cmd
	orders  io.WriteCloser
	answers chan string
	killed  atomic.Bool
}

// startProgram starts a program that ends with the test, when it is told nothing more.
func startProgram(t *testing.T, command *exec.Cmd) *peer {
	t.Helper()
	orders, err := command.StdinPipe()
	must(t, err)
	answers, err := command.StdoutPipe()
	must(t, err)
	complaints := &bytes.Buffer{}
	command.Stderr = complaints
	must(t, command.Start())
	p := &peer{command: command, orders: orders, answers: make(chan string)}
	over := make(chan struct{})
	var reading errgroup.Group
	reading.Go(func() error {
		defer close(p.answers)
		for lines := bufio.NewScanner(answers); lines.Scan(); {
			select {
			case p.answers <- lines.Text():
			case <-over:
			}
		}
		return nil
	})
	t.Cleanup(func() {
		close(over)
		orders.Close()
		defer time.AfterFunc(patience, func() { _ = command.Process.Kill() }).Stop()
		_ = reading.Wait()
		if err := command.Wait(); err != nil && !p.killed.Load() || t.Failed() {
			t.Errorf("%s ended with %v:\n%s", filepath.Base(command.Path), err, complaints)
		}
	})
	return p
}

// kill ends the process at once.
func (p *peer) kill() {
	p.killed.Store(true)
	_ = p.command.Process.Kill()
}

// A listener does what it is told, and answers in one line.
type listener interface {
	tell(t *testing.T, command ...any) (answer string)
}

// expect fails the test unless the answer is this.
func expect(t *testing.T, to listener, want string, command ...any) {
	t.Helper()
	if got := to.tell(t, command...); got != want {
		t.Fatalf("%v: %s, want %s", command, got, want)
	}
}

// tell returns the program's answer.
func (p *peer) tell(t *testing.T, command ...any) (answer string) {
	t.Helper()
	answer, err := p.order(patience, command...)
	must(t, err)
	return answer
}

// order is tell for those who are not the test's own goroutine, or who have more patience.
func (p *peer) order(patience time.Duration, command ...any) (answer string, err error) {
	if _, err := fmt.Fprintln(p.orders, command...); err != nil {
		return "", err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case answer, ok := <-p.answers:
		if !ok {
			return "", errGone
		}
		return answer, nil
	case <-late.C:
		return "", fmt.Errorf("no answer to %v within %v", command, patience)
	}
}

// errGone means that a program has ended in place of answering.
var errGone = errors.New("the program has ended")

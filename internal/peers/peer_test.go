package peers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	sidekeeper "github.com/sidekeeper/sidekeeper/clients/go"
)

// A peer makes contenders of one client library, each with a session of its own, and does with them what it is told;
// testdata/curator/…/Contender.java says what there is to tell.
type peer interface {
	tell(t *testing.T, command ...any) (answer string)
}

// expect fails the test unless the peer answers so.
func expect(t *testing.T, to peer, want string, command ...any) {
	t.Helper()
	if got := to.tell(t, command...); got != want {
		t.Fatalf("%v: %s, want %s", command, got, want)
	}
}

// A program is a peer in another process.
type program struct {
	orders  io.WriteCloser
	answers chan string
}

func startKazoo(t *testing.T, servers string) peer {
	t.Helper()
	return startProgram(t, pythonCommand(t, servers))
}

func startCurator(t *testing.T, servers string) peer {
	t.Helper()
	return startProgram(t, javaCommand(t, "Contender", servers))
}

// startProgram starts a program that ends with the test, when it is told nothing more.
func startProgram(t *testing.T, command *exec.Cmd) *program {
	t.Helper()
	orders, err := command.StdinPipe()
	must(t, err)
	answers, err := command.StdoutPipe()
	must(t, err)
	complaints := &bytes.Buffer{}
	command.Stderr = complaints
	must(t, command.Start())
	p := &program{orders: orders, answers: make(chan string)}
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
		if err := command.Wait(); err != nil || t.Failed() {
			t.Errorf("%s ended with %v:\n%s", filepath.Base(command.Path), err, complaints)
		}
	})
	return p
}

func (p *program) tell(t *testing.T, command ...any) string {
	t.Helper()
	_, err := fmt.Fprintln(p.orders, command...)
	must(t, err)
	select {
	case answer := <-p.answers:
		return answer
	case <-time.After(patience):
		t.Fatalf("no answer to %v", command)
		return ""
	}
}

// A caller is a peer that holds locks through a sidecar.
type caller struct {
	client *sidekeeper.Client
	names  map[string]string
	crowd  crowd
	held   map[string]*sidekeeper.Lock
}

func newCaller(client *sidekeeper.Client) *caller {
	return &caller{client: client, names: map[string]string{}, held: map[string]*sidekeeper.Lock{}}
}

// A crowd is contenders for one lock.
type crowd struct {
	recipe, name string
	contenders   int
}

// modes are the recipes of a caller.
var modes = map[string]sidekeeper.Mode{
	"mutex": sidekeeper.Exclusive, "read": sidekeeper.Read, "write": sidekeeper.Write,
}

func (c *caller) tell(t *testing.T, command ...any) string {
	t.Helper()
	words := strings.Fields(fmt.Sprintln(command...))
	switch words[0] {
	case "make":
		c.names[words[1]] = filepath.Base(words[3])
		return "made"
	case "acquire":
		return c.acquire(t, words[1], words[2])
	case "release":
		must(t, c.held[words[1]].Release(t.Context()))
		return "released"
	case "gather":
		c.crowd = crowd{recipe: words[1], name: filepath.Base(words[2]), contenders: number(t, words[3])}
		return "gathered"
	case "contend":
		return c.contend(t, number(t, words[1]), words[2])
	}
	return "what is " + words[0] + "?"
}

func (c *caller) acquire(t *testing.T, id, milliseconds string) string {
	t.Helper()
	wait, err := time.ParseDuration(milliseconds + "ms")
	must(t, err)
	lock, err := c.client.Acquire(t.Context(), c.names[id], sidekeeper.LockOptions{Wait: &wait})
	if errors.Is(err, sidekeeper.ErrWaitTimeout) {
		return "waits"
	}
	must(t, err)
	c.held[id] = lock
	return "held"
}

func (c *caller) contend(t *testing.T, rounds int, folder string) string {
	t.Helper()
	var group errgroup.Group
	for range c.crowd.contenders {
		group.Go(func() error {
			for range rounds {
				err := c.client.WithLock(t.Context(), c.crowd.name, sidekeeper.LockOptions{Mode: modes[c.crowd.recipe]},
					func(context.Context, *sidekeeper.Lock) error { return count(folder) })
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return "failed: " + err.Error()
	}
	return "counted"
}

// count counts one more, as the programs do.
func count(folder string) error {
	marker, err := os.OpenFile(filepath.Join(folder, "marker"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer marker.Close()
	before, err := counted(folder)
	if err != nil {
		return err
	}
	<-time.After(time.Millisecond)
	err = os.WriteFile(filepath.Join(folder, "counter"), []byte(strconv.Itoa(before+1)), 0o600)
	return errors.Join(err, os.Remove(marker.Name()))
}

func counted(folder string) (int, error) {
	text, err := os.ReadFile(filepath.Join(folder, "counter"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

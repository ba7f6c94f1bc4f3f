package peers

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// libraryVariable makes this test's own program a peer that takes locks with the library it names.
const libraryVariable = "SIDEKEEPER_TEST_LIBRARY"

// A library takes locks in its own way.
type library interface {
	// contender makes one; with a session of its own if it is to be alone with it.
	contender(recipe, path string, alone bool) (contender, error)
	close()
}

// A contender takes one lock, again and again.
type contender interface {
	// acquire returns when the lock is held. The end of ctx ends the waiting, where the library has a way.
	acquire(ctx context.Context) error
	// release gives up what is held. It fails if that was lost before.
	release() error
	// close ends a session of its own.
	close()
}

// errRefused is that of contenders that are told that the lock is in use in another way.
var errRefused = errors.New("refused")

// goCommand runs this program as a peer.
func goCommand(t *testing.T, library string, arguments ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), libraryVariable+"="+library, "GORACE=atexit_sleep_ms=0")
	return command
}

// runPeer is the peer's process.
func runPeer(name string, arguments []string) (code int) {
	open := map[string]func([]string) (library, error){"sidekeeper": openSidekeeper, "go-zookeeper": openGoZooKeeper}
	used, err := open[name](arguments)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer used.close()
	p := &program{library: used, name: name, asking: map[string]*asking{}}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := p.answer(strings.Fields(lines.Text()))
		if err != nil {
			answer = "failed: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Fprintln(os.Stdout, answer)
	}
	return 0
}

// A program is what Contender.java is, in Go.
type program struct {
	library  library
	name     string
	asking   map[string]*asking
	gathered []worker
}

// An asking is a contender that one test tells what to do.
type asking struct {
	contender

	leave context.CancelFunc
	done  chan struct{} // closed when it has been granted the lock, or will not be
	err   error         // then: why not
}

func (p *program) answer(words []string) (string, error) {
	switch words[0] {
	case "clock":
		return strconv.FormatInt(now(), 10), nil
	case "make":
		made, err := p.library.contender(words[2], words[3], false)
		p.asking[words[1]] = &asking{contender: made}
		return "made", err
	case "ask":
		p.asking[words[1]].ask()
		return "asked", nil
	case "granted":
		wait, err := time.ParseDuration(words[2] + "ms")
		return cmp.Or(p.asking[words[1]].granted(wait), "waits"), err
	case "leave":
		return p.asking[words[1]].giveUp(), nil
	case "release":
		return "released", p.asking[words[1]].release()
	case "gather":
		return "gathered", p.gather(words[1], words[2], words[3])
	case "contend":
		return "counted", p.contend(words[1], words[2])
	}
	return "what is " + words[0] + "?", nil
}

func (a *asking) ask() {
	ctx, cancel := context.WithCancel(context.Background())
	a.leave, a.done = cancel, make(chan struct{})
	go func() {
		defer close(a.done)
		a.err = a.acquire(ctx)
	}()
}

// granted is held, refused, or what has failed; empty while it waits.
func (a *asking) granted(wait time.Duration) string {
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-a.done:
	case <-late.C:
		return ""
	}
	switch {
	case errors.Is(a.err, errRefused):
		return "refused"
	case a.err != nil:
		return "failed: " + a.err.Error()
	}
	return "held"
}

func (a *asking) giveUp() string {
	a.leave()
	<-a.done
	if a.err == nil {
		return "held"
	}
	return "left"
}

func (p *program) gather(recipe, path, count string) error {
	contenders, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for range contenders {
		made, err := p.library.contender(recipe, path, true)
		if err != nil {
			return err
		}
		one := worker{contender: made, reads: slices.Contains([]string{"read", "claim-read", "permits", "entry", "meeting"}, recipe)}
		if recipe == "permits" {
			one.lasts = 20 * time.Millisecond
		}
		if recipe == "meeting" {
			if one.meets, err = strconv.Atoi(path[strings.LastIndexByte(path, '-')+1:]); err != nil {
				return err
			}
		}
		p.gathered = append(p.gathered, one)
	}
	return nil
}

// contend has all that were gathered hold the lock so often, and lets them go.
func (p *program) contend(count, folder string) error {
	rounds, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for i, each := range p.gathered {
		group.Go(func() error {
			defer each.close()
			return each.work(folder, fmt.Sprintf("%s-%d-%d", p.name, os.Getpid(), i), rounds)
		})
	}
	p.gathered = nil
	return group.Wait()
}

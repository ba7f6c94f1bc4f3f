//go:build kube

package controllers

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/sidekeepertest"
	"github.com/sidekeeper/sidekeeper/test/kube"
)

var (
	changes   = flag.Int("changes", 12, "how many changes of leaders to force of each kind of election")
	elections = flag.Int("elections", 2, "in how many elections of each kind at once")
)

const (
	// changeTime is how long a change may take: until a caller that is frozen has been noticed, and its validity is over.
	changeTime = 2 * time.Minute
	// writeTime is for how long a leader writes before it is forced from office, and after it was let loose again.
	writeTime = 2 * time.Second
	cutTime   = 15 * time.Second
)

// An old leader writes too late if its write comes, in the API server's own order, after the first one of the next leader.
func TestNoWriteOfAnOldLeaderComesAfterTheNextOneHasBegun(t *testing.T) {
	folder := t.TempDir()
	cluster, err := kube.Start(t.Context(), folder)
	must(t, err)
	defer cluster.Stop()
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	journal := observe(t, cluster.KubeConfig)
	var stages sync.WaitGroup
	for number := range *elections {
		for _, kind := range []string{ours, theirs} {
			s := &stage{
				t: t, kind: kind, election: fmt.Sprintf("%s.%d", kind, number), kubeConfig: cluster.KubeConfig, address: sidecar.Address(),
				leaders: make(chan leader, 100),
			}
			stages.Go(func() { s.play(*changes / *elections) })
		}
	}
	stages.Wait()
	report(t, journal())
}

// report fails the test for what came too late under an election of Sidekeeper, and says what did under client-go's own.
func report(t *testing.T, writes map[string][]string) {
	t.Helper()
	late := map[string]tally{}
	for election, writers := range writes {
		kind := kindOf(election)
		late[kind] = late[kind].plus(count(writers))
	}
	for _, kind := range []string{ours, theirs} {
		t.Logf("%s: %v", kind, late[kind])
		if forced := *changes / *elections * *elections; late[kind].terms < forced {
			t.Errorf("%s: only %d leaders have written in %d changes", kind, late[kind].terms, forced)
		}
	}
	if late[ours].late > 0 {
		t.Errorf("writes came too late under %s", ours)
	}
}

// A leader is a process that says that it leads.
type leader struct {
	*candidate
	tag string
}

// A candidate is a process that the stage has started.
type candidate struct {
	command *exec.Cmd
	orders  io.WriteCloser
	exited  chan struct{}
	name    string
}

// A stage forces the leaders of one election from office.
type stage struct {
	t                                   *testing.T
	kind, election, kubeConfig, address string
	leaders                             chan leader
	processes                           sync.WaitGroup
}

func (s *stage) play(rounds int) {
	defer s.processes.Wait()
	names := []string{"one", "two"}
	running := map[string]*candidate{}
	for _, name := range names {
		running[name] = s.start(name)
	}
	defer func() {
		for _, c := range running {
			c.kill()
		}
	}()
	leads, ok := s.next(nil)
	for round := 0; ok && round < rounds; round++ {
		s.wait(writeTime)
		old := leads.candidate
		restore := s.force(old, round)
		if leads, ok = s.next(old); !ok {
			return
		}
		s.wait(writeTime)
		restore()
		s.wait(writeTime)
		old.kill() // if it has not ended by itself
		for name, c := range running {
			if c.hasExited() {
				running[name] = s.start(name)
			}
		}
	}
}

// force has a leader lose its office, and returns what gives it its freedom back.
func (s *stage) force(c *candidate, round int) (restore func()) {
	switch round % 3 {
	case 0:
		c.signal(syscall.SIGSTOP)
		return func() { c.signal(syscall.SIGCONT) }
	case 1:
		c.kill()
	default:
		fmt.Fprintln(c.orders, cutTime)
	}
	return func() {}
}

// next is the next leader other than the old one.
func (s *stage) next(old *candidate) (leader, bool) {
	late := time.After(changeTime)
	for {
		select {
		case next := <-s.leaders:
			if next.candidate != old {
				return next, true
			}
		case <-late:
			s.t.Errorf("%s: nobody else has come to lead", s.election)
			return leader{}, false
		}
	}
}

func (s *stage) wait(duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-s.t.Context().Done():
	}
}

// start starts a candidate: this program again, which TestMain makes one.
func (s *stage) start(name string) *candidate {
	settings, err := json.Marshal(candidacy{s.kind, name, s.election, s.kubeConfig, s.address})
	if err != nil {
		panic(err)
	}
	c := &candidate{command: exec.Command(os.Args[0]), exited: make(chan struct{}), name: name}
	c.command.Env = append(os.Environ(), candidacyVariable+"="+string(settings))
	c.command.Stderr = os.Stderr
	c.orders, _ = c.command.StdinPipe()
	said, _ := c.command.StdoutPipe()
	if err := c.command.Start(); err != nil {
		panic(err)
	}
	s.processes.Go(func() {
		defer close(c.exited)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			s.leaders <- leader{c, lines.Text()}
		}
		_ = c.command.Wait()
	})
	return c
}

func (c *candidate) signal(number syscall.Signal) { _ = c.command.Process.Signal(number) }

func (c *candidate) kill() {
	c.signal(syscall.SIGKILL)
	<-c.exited
}

func (c *candidate) hasExited() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

func TestMain(m *testing.M) {
	if settings := os.Getenv(candidacyVariable); settings != "" {
		os.Exit(stand(settings))
	}
	os.Exit(m.Run())
}

func kindOf(election string) string { return election[:len(election)-len(filepath.Ext(election))] }

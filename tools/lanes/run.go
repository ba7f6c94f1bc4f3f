package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A result is how one target ended.
type result struct {
	lane, target string
	builds       []string
	took, cpu    time.Duration
	err          error
	packages     []packageTime
	failed       []string // tests
	why          []string // what is quoted of it if it fails
	troubled     bool     // whether these lines begin with its first failure
	told         bool     // whether they end with it
}

// A runner runs targets of the Makefile and says what they say.
type runner struct {
	root string
	out  io.Writer
	mu   sync.Mutex // held while a line is written
}

// run runs the targets of all steps that run, so many at a time, in their order. One that fails keeps no other from running. No two
// targets build in the same folder at a time.
func (r *runner) run(ctx context.Context, steps []*step, together int) []result {
	results := targets(steps)
	queue := make([]*result, len(results))
	for i := range results {
		queue[i] = &results[i]
	}
	var running []*result
	ended := make(chan *result)
	for len(queue) > 0 || len(running) > 0 {
		next := slices.IndexFunc(queue, func(q *result) bool {
			return !slices.ContainsFunc(running, func(r *result) bool { return r.disturbs(q) })
		})
		if next >= 0 && len(running) < together {
			running = append(running, queue[next])
			go func(started *result) {
				r.target(ctx, started)
				ended <- started
			}(queue[next])
			queue = slices.Delete(queue, next, next+1)
			continue
		}
		gone := <-ended
		running = slices.DeleteFunc(running, func(r *result) bool { return r == gone })
	}
	return results
}

// disturbs says whether both build in one folder.
func (r *result) disturbs(other *result) bool {
	return slices.ContainsFunc(r.builds, func(folder string) bool { return slices.Contains(other.builds, folder) })
}

// targets are those of the lanes that run, less what another one of them does as well.
func targets(steps []*step) []result {
	var covered []string
	for _, s := range steps {
		if s.runs {
			covered = append(covered, s.lane.Covers...)
		}
	}
	var results []result
	for _, s := range steps {
		for _, target := range s.lane.Targets {
			if s.runs && !slices.Contains(covered, target) {
				results = append(results, result{lane: s.lane.Name, target: target, builds: s.lane.Builds})
			}
		}
	}
	return results
}

// target runs one target in a group of processes of its own, which an interrupt ends as it would at a terminal.
func (r *runner) target(ctx context.Context, to *result) {
	if to.err = ctx.Err(); to.err != nil {
		return
	}
	command := exec.CommandContext(ctx, "make", "--no-print-directory", to.target) //nolint:gosec // a target of the table
	command.Dir = r.root
	command.Env = plain(os.Environ())
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = time.Minute
	reader, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	began := time.Now()
	said := make(chan struct{})
	go func() {
		defer close(said)
		r.tell(to, reader)
	}()
	to.err = command.Run()
	to.took = time.Since(began)
	writer.Close()
	<-said
	if command.ProcessState != nil {
		to.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
}

// plain is the environment without what a make that runs this program has left there.
func plain(environment []string) []string {
	var kept []string
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if name != "MAKEFLAGS" && name != "MFLAGS" && name != "MAKELEVEL" && name != "GNUMAKEFLAGS" {
			kept = append(kept, variable)
		}
	}
	return kept
}

// tell passes on what a target says, line by line, and keeps what tests say of times and failures.
func (r *runner) tell(of *result, said io.Reader) {
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			of.note(line)
			r.mu.Lock()
			fmt.Fprintf(r.out, "%s | %s\n", of.target, strings.TrimSuffix(line, "\n"))
			r.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// remember writes the record of each lane whose targets have all passed, unless its inputs have changed meanwhile.
func remember(ctx context.Context, before workplace, steps []*step, results []result) error {
	after, err := snapshot(ctx, before.tree.root)
	if err != nil {
		return err
	}
	commit, err := git(ctx, before.tree.root, "", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return err
	}
	var failed error
	for _, s := range steps {
		took, passed := s.ended(results)
		if !passed || s.record == "" {
			continue
		}
		now := []string{"input . " + after.id}
		if s.inputs[0] != "input . "+before.tree.id {
			if now, err = (workplace{tree: after, tools: before.tools}).inputs(ctx, s.lane); err != nil {
				return err
			}
		}
		r := record{commit: commit, seconds: fmt.Sprintf("%.0f", took.Seconds()), inputs: s.inputs}
		if differs := r.differs(now); differs != "" {
			failed = errors.Join(failed, fmt.Errorf("lane %s is not recorded: changed while it ran: %s", s.lane.Name, differs))
			continue
		}
		failed = errors.Join(failed, r.write(s.record))
	}
	return failed
}

// ended says how long the targets of the lane took, and whether all of them have passed.
func (s *step) ended(results []result) (took time.Duration, passed bool) {
	passed = s.runs
	for i := range results {
		if each := &results[i]; each.lane == s.lane.Name {
			took += each.took
			passed = passed && each.err == nil
		}
	}
	return took, passed
}

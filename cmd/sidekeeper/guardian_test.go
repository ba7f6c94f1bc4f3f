package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// relatives are what a command has started, each told apart by how it got away.
func relatives() []string {
	if runtime.GOOS == "linux" { // elsewhere nobody finds what has left its group
		return []string{"stay", "session"}
	}
	return []string{"stay"}
}

// A runner is a sidekeeper in a process of its own.
type runner struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func startRunner(t *testing.T, address string, args ...string) *runner {
	t.Helper()
	r := newRunner(address, args...)
	r.Stderr = os.Stderr
	r.begin(t)
	return r
}

func newRunner(address string, args ...string) *runner {
	r := &runner{Cmd: exec.Command(os.Args[0], args...)}
	r.Env = append(os.Environ(), role+"=sidekeeper", sidekeeper.AddressVariable+"="+address)
	return r
}

// begin starts it, and ends it with the test.
func (r *runner) begin(t *testing.T) {
	t.Helper()
	out, err := r.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewScanner(out)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Process.Kill()
		r.Wait()
	})
}

// numbers reads the numbers of so many processes, which do not outlive the test.
func numbers(t *testing.T, next func() string, count int) (processes []int) {
	t.Helper()
	for range count {
		number, err := strconv.Atoi(next())
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, number)
		t.Cleanup(func() { syscall.Kill(number, syscall.SIGKILL) })
	}
	return processes
}

func (r *runner) next() string {
	r.lines.Scan()
	return r.lines.Text()
}

func (p *program) next() string { return <-p.lines }

// living are those of the processes that have not ended.
func living(processes []int) []int {
	return slices.DeleteFunc(slices.Clone(processes), func(process int) bool { return syscall.Kill(process, 0) != nil })
}

func wantNobody(t *testing.T, processes []int, when string) {
	t.Helper()
	if left := living(processes); len(left) > 0 {
		t.Errorf("processes %v of %v still work %s", left, processes, when)
	}
}

func TestAKilledRunnersCommandIsGoneForTheNextHolder(t *testing.T) {
	s, _ := develop(t)
	first := startRunner(t, s.address, append([]string{"lock", "run", "job", "--", os.Args[0], "family"}, relatives()...)...)
	processes := numbers(t, first.next, len(relatives()))
	t.Setenv(role, "command")
	t.Setenv(sidekeeper.AddressVariable, s.address)
	next := launch(t.Context(), "lock", "run", "job", "--", os.Args[0], "environment")
	killed := time.Now()
	first.Process.Kill()
	if line := next.next(); line == "" {
		t.Fatalf("the next does not run: %s", next.stderr)
	}
	wantNobody(t, processes, "when the next has the lock")
	t.Logf("the next has the lock after %v", time.Since(killed))
	next.want(t, 3)
}

func TestALockIsKeptWhileItsKilledRunnersCommandLives(t *testing.T) {
	s, _ := develop(t)
	first := startRunner(t, s.address, "lock", "run", "job", "--", os.Args[0], "family", "parent")
	guardian := numbers(t, first.next, 1)[0]
	syscall.Kill(guardian, syscall.SIGSTOP)
	first.Process.Kill()
	t.Setenv(role, "command")
	t.Setenv(sidekeeper.AddressVariable, s.address)
	next := []string{"lock", "run", "job", "--wait", "500ms", "--", os.Args[0], "environment"}
	launch(t.Context(), next...).want(t, exit.NotObtained, "WAIT_TIMEOUT")
	syscall.Kill(guardian, syscall.SIGCONT)
	launch(t.Context(), next...).want(t, 3)
}

func TestTheSidecarSeesAKilledRunnerGoWhenNothingOfItsCommandIsLeft(t *testing.T) {
	server := scripted.Start(t)
	r := startRunner(t, server.Target, append([]string{"lock", "run", "orders", "--", os.Args[0], "family"}, relatives()...)...)
	call := server.NextAcquire()
	call.Grant(1)
	processes := numbers(t, r.next, len(relatives()))
	r.Process.Kill()
	call.AwaitGone()
	wantNobody(t, processes, "when the connection is closed")
}

func TestTheSidecarSeesAKilledMemberGoWhenNothingOfItsCommandIsLeft(t *testing.T) {
	server := scripted.Start(t)
	r := startRunner(t, server.Target,
		append([]string{"members", "join", "web", "web-1", "--", os.Args[0], "family"}, relatives()...)...)
	accept(server, 1)
	call := server.Groups.NextJoin()
	call.Admit(1)
	processes := numbers(t, r.next, len(relatives()))
	r.Process.Kill()
	call.AwaitGone()
	wantNobody(t, processes, "when the connection is closed")
}

func TestACommandWhoseRunnerIsFrozenIsKilledBeforeTheValidityEnds(t *testing.T) {
	const validity = 8 * time.Second // of which 0.2 s are left for killing, on a machine with other work
	server := scripted.Start(t)
	var asked atomic.Pointer[time.Time] // of the latest question, which was sent before
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		asked.Store(new(time.Now()))
		return scripted.HoldsValidFor(request, validity), nil
	}
	r := startRunner(t, server.Target, append([]string{"lock", "run", "orders", "--", os.Args[0], "family"}, relatives()...)...)
	server.NextAcquire().Grant(1)
	processes := numbers(t, r.next, len(relatives()))
	for first := asked.Load(); asked.Load() == first; { // it is told of longer validities
		<-time.After(10 * time.Millisecond)
	}
	if err := r.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); len(living(processes)) > 0 && time.Now().Before(deadline); {
		<-time.After(5 * time.Millisecond)
	}
	if lived := time.Since(*asked.Load()); lived >= validity || lived < validity/4 {
		t.Errorf("killed %v after a question that was answered with %v", lived, validity)
	}
	r.Process.Signal(syscall.SIGCONT)
	for r.lines.Scan() {
	}
	if r.Wait(); r.ProcessState.ExitCode() != exit.Lost {
		t.Errorf("exit code %d, want %d", r.ProcessState.ExitCode(), exit.Lost)
	}
}

func TestNothingIsLeftOfACommandThatEndsForItsLock(t *testing.T) {
	server := scripted.Start(t)
	p := start(t, server, append([]string{"lock", "run", "orders", "--kill-grace", "2s", "--", os.Args[0], "family"}, relatives()...)...)
	call := server.NextAcquire()
	call.Grant(1)
	processes := numbers(t, p.next, len(relatives()))
	call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	p.want(t, exit.Lost)
	wantNobody(t, processes, "when the lock is given up")
}

func TestACommandAtRiskThatEndsByItselfTakesAlongWhatItHasStarted(t *testing.T) {
	const validity = 6 * time.Second
	server := scripted.Start(t)
	var asked atomic.Bool
	server.CheckHolds = func(ctx context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		if asked.Swap(true) {
			return scripted.Frozen[lockv1.CheckRequest, lockv1.CheckResponse](ctx, request)
		}
		return scripted.HoldsValidFor(request, validity), nil
	}
	released := make(chan struct{}, 1)
	server.Release = func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		released <- struct{}{}
		return &lockv1.ReleaseResponse{}, nil
	}
	members := append([]string{"linger"}, relatives()[1:]...)
	p := start(t, server, append([]string{"lock", "run", "orders", "--kill-grace", "1500ms", "--", os.Args[0], "family"}, members...)...)
	server.NextAcquire().Grant(1)
	processes := numbers(t, p.next, len(members))
	receive(t, released)
	wantNobody(t, processes, "when the lock is given up")
	p.want(t, exit.Lost)
}

func TestTheLockIsKeptUntilTheGroupHasEndedThatWasToldTo(t *testing.T) {
	server := scripted.Start(t)
	p := start(t, server, "lock", "run", "orders", "--", os.Args[0], "family", "linger")
	call := server.NextAcquire()
	call.Grant(1)
	processes := numbers(t, p.next, 1)
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	call.AwaitGone()
	wantNobody(t, processes, "when the lock is given up")
	p.want(t, 5)
}

func TestWhatACommandLeavesBehindByItselfGoesOn(t *testing.T) {
	server := scripted.Start(t)
	p := start(t, server, "lock", "run", "orders", "--", os.Args[0], "leave", "stay")
	server.NextAcquire().Grant(1)
	processes := numbers(t, p.next, 1)
	p.want(t, 0)
	if len(living(processes)) == 0 {
		t.Error("it was killed with the command, which had ended")
	}
}

func TestACommandLivesOnWhoeverReadsWhatSidekeeperSays(t *testing.T) {
	for readers, use := range map[string]func(t *testing.T, reader, writer *os.File){
		"gone": func(_ *testing.T, reader, _ *os.File) { reader.Close() },
		"asleep": func(t *testing.T, reader, writer *os.File) {
			t.Cleanup(func() { reader.Close() })
			for err := error(nil); err == nil; _, err = writer.Write(make([]byte, 1<<10)) { // until it is full
				writer.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			}
		},
	} {
		t.Run(readers, func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			use(t, reader, writer)
			server := scripted.Start(t)
			r := newRunner(server.Target, "lock", "run", "orders", "--", os.Args[0], "polite")
			r.Stderr = writer
			r.begin(t)
			writer.Close()
			call := server.NextAcquire()
			call.Grant(1)
			wantNext(t, r, "ready")
			call.Suspend(4 * time.Second)
			call.Resume()
			call.AskBack(&lockv1.RevocationRequested{RequestedBy: "uid 7"})
			wantNext(t, r, "terminated")
			if r.Wait(); r.ProcessState.ExitCode() != 5 {
				t.Errorf("it ended with %v", r.ProcessState)
			}
		})
	}
}

func wantNext(t *testing.T, r *runner, want string) {
	t.Helper()
	line := make(chan string, 1)
	go func() { line <- r.next() }()
	if got := receive(t, line); got != want {
		t.Fatalf("got line %q, want %q", got, want)
	}
}

func TestACommandThatStopsAgainAndAgainGoesOnNowAndThen(t *testing.T) {
	server := scripted.Start(t)
	p := start(t, server, "lock", "run", "orders", "--", os.Args[0], "balk")
	server.NextAcquire().Grant(1)
	p.wantLine(t, "again")
	p.wantLine(t, "again")
	began := time.Now()
	p.wantLine(t, "again")
	p.wantLine(t, "again")
	if took := time.Since(began); took < time.Second {
		t.Errorf("it was told to go on twice within %v", took)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.want(t, exit.Signal+int(syscall.SIGTERM))
}

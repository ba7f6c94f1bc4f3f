package main

import (
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
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// Tests that wait for the end of a validity have locks of this one. The command is killed almost three seconds before its end: the machine
// may have much other work.
const (
	validity  = 20 * time.Second
	killGrace = "14s"
)

// relatives are what a command has started, each told apart by how it got away.
func relatives() []string {
	if runtime.GOOS == "linux" { // elsewhere nobody finds what has left its group
		return []string{"stay", "session"}
	}
	return []string{"stay"}
}

// numbers reads the numbers of so many processes, which do not outlive the test.
func (p *program) numbers(count int) (processes []int) {
	p.t.Helper()
	for range count {
		number, err := strconv.Atoi(receive(p.t, p.lines))
		if err != nil {
			p.t.Fatalf("%v; stderr: %s", err, p.stderr)
		}
		processes = append(processes, number)
		p.t.Cleanup(func() { syscall.Kill(number, syscall.SIGKILL) })
	}
	return processes
}

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
	t.Parallel()
	s, _ := develop(t)
	first := start(t, s.address, append([]string{"lock", "run", "job", "--", os.Args[0], "family"}, relatives()...)...)
	processes := first.numbers(len(relatives()))
	next := start(t, s.address, "lock", "run", "job", "--", os.Args[0], "environment")
	killed := time.Now()
	first.signal(syscall.SIGKILL)
	if line := receive(t, next.lines); line == "" {
		t.Fatalf("the next does not run: %s", next.stderr)
	}
	wantNobody(t, processes, "when the next has the lock")
	t.Logf("the next has the lock after %v", time.Since(killed))
	next.want(t, 3)
}

func TestTheSidecarSeesAKilledRunnerGoWhenNothingOfItsCommandIsLeft(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	r := start(t, server.Target, append([]string{"lock", "run", "orders", "--", os.Args[0], "family"}, relatives()...)...)
	call := server.NextAcquire()
	call.Grant(1)
	processes := r.numbers(len(relatives()))
	r.signal(syscall.SIGKILL)
	call.AwaitGone()
	wantNobody(t, processes, "when the connection is closed")
}

func TestTheSidecarSeesAKilledMemberGoWhenNothingOfItsCommandIsLeft(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	r := start(t, server.Target,
		append([]string{"members", "join", "web", "web-1", "--", os.Args[0], "family"}, relatives()...)...)
	accept(server, 1)
	call := server.Groups.NextJoin()
	call.Admit(1)
	processes := r.numbers(len(relatives()))
	r.signal(syscall.SIGKILL)
	call.AwaitGone()
	wantNobody(t, processes, "when the connection is closed")
}

// leaveGrace answers a command with --kill-grace that asks for how long leases are valid.
func leaveGrace(server *scripted.Server) {
	server.CheckLease = func(context.Context, *leasev1.CheckRequest) (*leasev1.CheckResponse, error) {
		return &leasev1.CheckResponse{ValidFor: durationpb.New(validity)}, nil
	}
	server.NextOpen().Accept("for the grace")
}

func TestACommandWhoseRunnerIsFrozenIsKilledBeforeTheValidityEnds(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	var asked atomic.Pointer[time.Time] // of the latest question, which was sent before
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		asked.Store(new(time.Now()))
		return scripted.HoldsValidFor(request, validity), nil
	}
	family := append([]string{"--", os.Args[0], "family"}, relatives()...)
	r := start(t, server.Target, append([]string{"lock", "run", "orders", "--kill-grace", killGrace}, family...)...)
	leaveGrace(server)
	server.NextAcquire().Grant(1)
	processes := r.numbers(len(relatives()))
	for first := asked.Load(); asked.Load() == first; { // it is told of longer validities
		<-time.After(10 * time.Millisecond)
	}
	r.signal(syscall.SIGSTOP)
	for deadline := time.Now().Add(patience); len(living(processes)) > 0 && time.Now().Before(deadline); {
		<-time.After(5 * time.Millisecond)
	}
	if lived := time.Since(*asked.Load()); lived >= validity || lived < validity/4 {
		t.Errorf("killed %v after a question that was answered with %v", lived, validity)
	}
	r.signal(syscall.SIGCONT)
	r.want(t, exit.Lost)
}

func TestNothingIsLeftOfACommandThatEndsForItsLock(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := start(t, server.Target, append([]string{"lock", "run", "orders", "--kill-grace", "2s", "--", os.Args[0], "family"}, relatives()...)...)
	leaveGrace(server)
	call := server.NextAcquire()
	call.Grant(1)
	processes := p.numbers(len(relatives()))
	call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	p.want(t, exit.Lost)
	wantNobody(t, processes, "when the lock is given up")
}

func TestACommandAtRiskThatEndsByItselfTakesAlongWhatItHasStarted(t *testing.T) {
	t.Parallel()
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
	p := start(t, server.Target, append([]string{"lock", "run", "orders", "--kill-grace", killGrace, "--", os.Args[0], "family"}, members...)...)
	leaveGrace(server)
	server.NextAcquire().Grant(1)
	processes := p.numbers(len(members))
	receive(t, released)
	wantNobody(t, processes, "when the lock is given up")
	p.want(t, exit.Lost)
}

func TestTheLockIsKeptUntilTheGroupHasEndedThatWasToldTo(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := start(t, server.Target, "lock", "run", "orders", "--", os.Args[0], "family", "linger")
	call := server.NextAcquire()
	call.Grant(1)
	processes := p.numbers(1)
	p.signal(syscall.SIGTERM)
	call.AwaitGone()
	wantNobody(t, processes, "when the lock is given up")
	p.want(t, 5)
}

func TestWhatACommandLeavesBehindByItselfGoesOn(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := start(t, server.Target, "lock", "run", "orders", "--", os.Args[0], "leave", "stay")
	server.NextAcquire().Grant(1)
	processes := p.numbers(1)
	p.want(t, 0)
	if len(living(processes)) == 0 {
		t.Error("it was killed with the command, which had ended")
	}
}

func TestACommandLivesOnWhoeverReadsWhatSidekeeperSays(t *testing.T) {
	t.Parallel()
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
			r := startAs(t, func(command *exec.Cmd) { command.Stderr = writer }, server.Target, "lock", "run", "orders", "--", os.Args[0], "polite")
			writer.Close()
			call := server.NextAcquire()
			call.Grant(1)
			r.wantLine(t, "ready")
			call.Suspend(4 * time.Second)
			call.Resume()
			call.AskBack(&holdv1.RevocationRequested{RequestedBy: "uid 7"})
			r.wantLine(t, "terminated")
			r.want(t, 5)
		})
	}
}

func TestACommandThatStopsAgainAndAgainGoesOnNowAndThen(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := start(t, server.Target, "lock", "run", "orders", "--", os.Args[0], "balk")
	server.NextAcquire().Grant(1)
	p.wantLine(t, "again")
	began := time.Now()
	for range 5 {
		p.wantLine(t, "again")
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("it was told to go on five times within %v", took)
	}
	p.signal(syscall.SIGTERM)
	p.want(t, exit.Signal+int(syscall.SIGTERM))
}

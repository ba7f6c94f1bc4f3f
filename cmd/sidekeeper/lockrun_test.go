package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// runs starts `lock run` of a command of this test binary.
func runs(t *testing.T, server *scripted.Server, flags []string, behaviour string) *program {
	t.Helper()
	args := append([]string{"lock", "run", "orders"}, flags...)
	return start(t, server.Target, append(args, "--", os.Args[0], behaviour)...)
}

func TestTheCommandGetsNameAndTokenAndItsExitCodeIsPassedOn(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := runs(t, server, []string{"--mode", "read", "--owner", "me", "--wait", "3s"}, "environment")
	call := server.NextAcquire()
	if r := call.Request; r.GetMode() != holdv1.Mode_MODE_READ || r.GetOwner() != "me" ||
		r.GetWaitTimeout().AsDuration() != 3*time.Second {
		t.Errorf("%v", r)
	}
	call.Grant(77)
	p.wantLine(t, "orders 77 false orders:77")
	p.want(t, 3)
	call.AwaitGone()
}

func TestInputAndOutputPassStraightThrough(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := runs(t, server, nil, "copy")
	server.NextAcquire().Grant(1)
	p.wantLine(t, "input")
	p.want(t, 0, "copied")
}

func TestACommandEndedByASignalGives128AndItsNumber(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := runs(t, server, nil, "die")
	server.NextAcquire().Grant(1)
	p.want(t, 128+15)
}

func TestSignalsReachTheCommand(t *testing.T) {
	t.Parallel()
	heeded := make(chan os.Signal, 16) // whoever runs the tests may ignore some, as nohup does
	signal.Notify(heeded, supervise.Forwarded...)
	defer signal.Stop(heeded)
	server := scripted.Start(t)
	p := runs(t, server, nil, "polite")
	server.NextAcquire().Grant(1)
	p.wantLine(t, "ready")
	for _, c := range []struct {
		number syscall.Signal
		line   string
	}{
		{syscall.SIGINT, "interrupt"},
		{syscall.SIGHUP, "hangup"},
		{syscall.SIGQUIT, "quit"},
		{syscall.SIGUSR1, "user defined signal 1"},
		{syscall.SIGUSR2, "user defined signal 2"},
		{syscall.SIGWINCH, "window changed"},
		{syscall.SIGTERM, "terminated"},
	} {
		p.signal(c.number)
		p.wantLine(t, c.line)
	}
	p.want(t, 5)
}

func TestACommandAtRiskIsTerminatedAndKilledBeforeTheValidityEnds(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	var first atomic.Pointer[time.Time]
	server.CheckHolds = func(ctx context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		if !first.CompareAndSwap(nil, new(time.Now())) {
			return scripted.Frozen[lockv1.CheckRequest, lockv1.CheckResponse](ctx, request)
		}
		return scripted.HoldsValidFor(request, validity), nil
	}
	released := make(chan time.Duration, 1) // the command is dead by then
	server.Release = func(ctx context.Context, request *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		released <- time.Since(*first.Load())
		return scripted.Frozen[lockv1.ReleaseRequest, lockv1.ReleaseResponse](ctx, request)
	}
	p := runs(t, server, []string{"--kill-grace", killGrace}, "stubborn")
	leaveGrace(server)
	server.NextAcquire().Grant(1)
	p.wantLine(t, "ready")
	p.wantLine(t, "terminated")
	terminated := time.Since(*first.Load())
	if _, more := <-p.lines; more {
		t.Error("another signal than SIGTERM and SIGKILL")
	}
	// The validity counts from when the question was sent, which was before the server saw it.
	if killed := receive(t, released); terminated < validity/4 || killed >= validity {
		t.Errorf("terminated after %v and killed after %v of %v", terminated, killed, validity)
	}
	p.want(t, 70, "lock orders is at risk: safe for ", "the command was ended because lock orders was at risk")
}

func TestACommandThatEndsInTimeWhenItsLockIsAtRiskHasStillBeenEnded(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		return scripted.HoldsValidFor(request, 10*time.Second), nil
	}
	p := runs(t, server, []string{"--kill-grace", killGrace}, "polite")
	leaveGrace(server)
	server.NextAcquire().Grant(1)
	p.want(t, 70, "at risk")
}

func TestAGraceThatNoLockLeavesIsRefusedBeforeAnythingIsTaken(t *testing.T) {
	t.Parallel()
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{}).Address()
	for _, under := range [][]string{
		{"lock", "run", "orders"},
		{"lock", "run", "orders", "users"},
		{"semaphore", "run", "reports"},
		{"elect", "run", "scheduler"},
		{"barrier", "enter", "load", "1"},
	} {
		line := append(append([]string{"--address", sidecar}, under...), "--kill-grace", "1h", "--", "echo", "ran")
		stdout, stderr, code := output(t, line...)
		if code != 64 || stdout != "" || !strings.HasPrefix(stderr, `sidekeeper: --kill-grace is "1h0m0s": less than `) {
			t.Errorf("%v: %d %q %q", under, code, stdout, stderr)
		}
	}
	if stdout, _, code := output(t, "--address", sidecar, "lock", "ls"); code != 0 || strings.Contains(stdout, "orders") {
		t.Errorf("%d %q", code, stdout)
	}
}

func TestACommandIsKilledWhenItsLockIsLost(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := runs(t, server, nil, "stubborn")
	call := server.NextAcquire()
	call.Grant(1)
	p.wantLine(t, "ready")
	call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	p.want(t, 70)
	if said := p.stderr.String(); said != "sidekeeper: lock orders lost: by an operator (LOCK_BROKEN)\n" {
		t.Errorf("%q", said)
	}
}

func TestSuspensionIsToldAndTheCommandGoesOn(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := runs(t, server, nil, "polite")
	call := server.NextAcquire()
	call.Grant(1)
	p.wantLine(t, "ready")
	call.Suspend(4 * time.Second)
	call.Resume()
	call.AskBack(&holdv1.RevocationRequested{RequestedBy: "uid 7", Reason: "maintenance"})
	p.wantLine(t, "terminated")
	p.want(t, 5, "no contact with the ensemble: lock orders is safe for 4s", "contact with the ensemble is back",
		"revocation requested by uid 7: maintenance")
}

func TestARevocationThatIsIgnoredKillsTheCommandBeforeItsGraceIsOver(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		return scripted.HoldsValidFor(request, validity), nil
	}
	p := runs(t, server, []string{"--on-revoke", "ignore", "--kill-grace", killGrace}, "stubborn")
	leaveGrace(server)
	call := server.NextAcquire()
	call.Grant(1)
	p.wantLine(t, "ready")
	asked := time.Now()
	call.AskBack(&holdv1.RevocationRequested{Grace: durationpb.New(5 * time.Second)})
	for line := range p.lines {
		t.Errorf("the command got %s", line)
	}
	if lasted := time.Since(asked); lasted >= 5*time.Second {
		t.Errorf("killed after %v", lasted)
	}
	p.want(t, 70, "grace period expired")
}

func TestAWaitOfNothingIsATry(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := runs(t, server, []string{"--wait", "0s"}, "environment")
	call := server.NextAcquire()
	if wait := call.Request.GetWaitTimeout(); wait == nil || wait.AsDuration() != 0 {
		t.Errorf("--wait 0s waits for %v", wait)
	}
	call.End(scripted.Status(codes.FailedPrecondition, "LOCK_HELD", "so it is"))
	p.want(t, 75, "sidekeeper: lock orders: so it is (LOCK_HELD)\n")
}

func TestALockThatIsNotObtainedRunsNothing(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		code  codes.Code
		exits int
	}{
		"LOCK_HELD":            {codes.FailedPrecondition, 75},
		"WAIT_TIMEOUT":         {codes.DeadlineExceeded, 75},
		"WAITER_LIMIT":         {codes.ResourceExhausted, 75},
		"LOCK_KIND_MISMATCH":   {codes.FailedPrecondition, 1},
		"ENSEMBLE_UNREACHABLE": {codes.Unavailable, 69},
		"SIDECAR_STOPPING":     {codes.Unavailable, 69},
		"LEASE_LOST":           {codes.Aborted, 69},
		"ENSEMBLE_DENIED":      {codes.PermissionDenied, 77},
	} {
		t.Run(reason, func(t *testing.T) {
			server := scripted.Start(t)
			p := runs(t, server, []string{"--try"}, "environment")
			call := server.NextAcquire()
			if wait := call.Request.GetWaitTimeout(); wait == nil || wait.AsDuration() != 0 {
				t.Errorf("--try waits for %v", wait)
			}
			call.End(scripted.Status(c.code, reason, "so it is"))
			p.want(t, c.exits, "sidekeeper: lock orders: so it is ("+reason+")\n")
			if line, ran := <-p.lines; ran {
				t.Errorf("the command ran and said %q", line)
			}
		})
	}
}

func TestAnInterruptWhileWaitingGivesThePlaceUp(t *testing.T) {
	t.Parallel()
	for number, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(number.String(), func(t *testing.T) {
			server := scripted.Start(t)
			p := runs(t, server, nil, "environment")
			call := server.NextAcquire()
			call.Queue(3)
			p.signal(number)
			p.want(t, code, "lock orders: given up: "+number.String())
			call.AwaitGone()
		})
	}
}

func TestACommandThatIsNotThereIsToldBeforeTheLockIsTaken(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	start(t, server.Target, "lock", "run", "orders", "--", "no-such-command-anywhere").want(t, 127, "no-such-command-anywhere")
}

func TestACommandThatIsThereAndCannotBeRunExitsWith126(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	for _, command := range []string{"help", "lockrun_test.go"} {
		path, err := filepath.Abs(command)
		if err != nil {
			t.Fatal(err)
		}
		start(t, server.Target, "lock", "run", "orders", "--", path).want(t, 126, path)
	}
}

func TestAServerThatDoesNotSpeakIsToldInPlainWords(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	go func() {
		for connection, err := mute.Accept(); err == nil; connection, err = mute.Accept() {
			connection.Close()
		}
	}()
	address := mute.Addr().String()
	_, said, code := output(t, "lock", "run", "orders", "--try", "--address", address, "--", "true")
	want := "sidekeeper: lock orders: cannot reach the sidecar at " + address + ": what listens there does not answer as a gRPC server does\n"
	if code != exit.Unreachable || said != want {
		t.Errorf("exit %d, %q", code, said)
	}
}

func TestLockRunWaitsForASidecarThatIsAway(t *testing.T) {
	t.Parallel()
	away := filepath.Join(t.TempDir(), "s")
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	go func() {
		time.Sleep(2 * time.Second) //nolint:forbidigo // for so long it is away
		_ = os.Symlink(strings.TrimPrefix(sidecar.Address(), "unix://"), away)
	}()
	_, said, code := output(t, "lock", "run", "orders", "--wait", "1m", "--address", "unix://"+away, "--", "true")
	if code != 0 || !strings.HasPrefix(said, "sidekeeper: waiting for the sidecar: lock orders: ") || strings.Count(said, "\n") != 1 {
		t.Errorf("exit %d, %q", code, said)
	}
}

func TestLockRunSaysAtOnceThatItsSidecarCannotRecordTheGrant(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := runs(t, server, nil, "environment")
	server.NextAcquire().End(scripted.Status(codes.Unavailable, "NOT_RECORDED", "the sidecar cannot write what it must record first"))
	server.NextAcquire().Grant(1) // a tenth of a second later: the disk is full no more
	p.want(t, 3, "waiting for the sidecar: lock orders: the sidecar cannot write what it must record first (NOT_RECORDED): "+
		"the sidecar's log names the file, such as its audit log, and the cause")
}

func TestAReleaseThatIsNotConfirmedDoesNotFailTheCommand(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Release = func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		return nil, scripted.Status(codes.Internal, "INTERNAL", "a surprise")
	}
	p := runs(t, server, nil, "environment")
	server.NextAcquire().Grant(1)
	p.want(t, 3, "lock orders: the work has ended, but its release is not confirmed: Internal (INTERNAL): a surprise (RELEASE_UNCONFIRMED)")
}

func TestTheCommandDiesWithSidekeeper(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := runs(t, server, nil, "stubborn")
	server.NextAcquire().Grant(1)
	p.wantLine(t, "ready")
	p.signal(syscall.SIGKILL)
	if line := receive(t, p.lines); line != "" { // it ends when nobody can write any more
		t.Errorf("the command got %s", line)
	}
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func TestNothingOfACommandIsLeftWhenItsGuardianIsKilled(t *testing.T) {
	for _, number := range []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT} { // with the latter, a Go program exits with 2
		t.Run(number.String(), func(t *testing.T) {
			server := scripted.Start(t)
			released := make(chan struct{}, 1)
			server.Release = func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
				released <- struct{}{}
				return &lockv1.ReleaseResponse{}, nil
			}
			r := startRunner(t, server.Target, "lock", "run", "orders", "--", os.Args[0], "family", "parent", "stay", "session")
			server.NextAcquire().Grant(1)
			processes := numbers(t, r.next, 3)
			syscall.Kill(processes[0], number)
			receive(t, released)
			wantNobody(t, processes, "when the lock is given up")
			if r.Wait(); r.ProcessState.ExitCode() != exit.Signal+int(syscall.SIGKILL) {
				t.Errorf("exit code %d", r.ProcessState.ExitCode())
			}
		})
	}
}

func TestNothingOfACommandOutlivesItsLockWhenItsGuardianIsFrozen(t *testing.T) {
	const validity = 12 * time.Second
	revoked := &lockv1.RevocationRequested{Grace: durationpb.New(validity / 2)}
	for cause, end := range map[string]func(*scripted.Acquire){
		"broken": func(call *scripted.Acquire) {
			call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
		},
		"revoked": func(call *scripted.Acquire) { call.AskBack(revoked) },
		"at risk": func(*scripted.Acquire) {},
	} {
		t.Run(cause, func(t *testing.T) {
			server := scripted.Start(t)
			var asked atomic.Pointer[time.Time] // when the question was sent that is answered, or later
			server.CheckHolds = func(ctx context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
				if asked.CompareAndSwap(nil, new(time.Now())) {
					return scripted.HoldsValidFor(request, validity), nil
				}
				return scripted.Frozen[lockv1.CheckRequest, lockv1.CheckResponse](ctx, request)
			}
			r := startRunner(t, server.Target, "lock", "run", "orders", "--", os.Args[0], "family", "parent", "stay", "session")
			call := server.NextAcquire()
			call.Grant(1)
			processes := numbers(t, r.next, 3)
			syscall.Kill(processes[0], syscall.SIGSTOP)
			end(call)
			for over := asked.Load().Add(validity); len(living(processes)) > 0 && time.Now().Before(over); {
				<-time.After(5 * time.Millisecond)
			}
			if wantNobody(t, processes, "when the validity is over"); t.Failed() {
				return
			}
			r.Wait()
			if code := r.ProcessState.ExitCode(); code != exit.Lost {
				t.Errorf("exit code %d, want %d", code, exit.Lost)
			}
		})
	}
}

// A command may be a `lock run` itself, with a guardian of its own, which a guardian that has to kill finds among the rest.
func TestNothingOfACommandOutlivesALockWithinALock(t *testing.T) {
	const flight = `sh "$0" &` // starts itself anew and ends, again and again, until its file is gone
	script := filepath.Join(t.TempDir(), "flight")
	if err := os.WriteFile(script, []byte(flight), 0o600); err != nil {
		t.Fatal(err)
	}
	server := scripted.Start(t)
	r := startRunner(t, server.Target, "lock", "run", "outer", "--", "env", role+"=sidekeeper", os.Args[0], "lock", "run", "inner", "--",
		"sh", "-c", "sh "+script+" & echo started; wait; sleep 1000")
	outer := server.NextAcquire()
	outer.Grant(1)
	inner := server.NextAcquire()
	inner.Grant(2)
	wantNext(t, r, "started")
	r.Process.Kill()
	inner.AwaitGone()
	if count := shellsWith(script); count > 0 {
		t.Errorf("%d processes still work when the inner lock is free", count)
	}
	outer.AwaitGone()
	if count := shellsWith(script); count > 0 {
		t.Errorf("%d processes still work when the outer lock is free", count)
	}
}

// shellsWith counts the shells that have the script in their command line, which what has ended has none of.
func shellsWith(script string) (count int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		if line, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(line), "sh\x00") && strings.Contains(string(line), script) {
			count++
		}
	}
	return count
}

func TestWhatARunOfACommandLeavesBehindIsNotSidekeepers(t *testing.T) {
	s := newConfigScene(t)
	s.put("app", "1")
	r := startRunner(t, s.sidecar.Address(), "config", "watch", "app", "--exec", "sleep 0.1 & echo $!")
	left := numbers(t, r.next, 1)[0]
	s.put("app", "2")
	numbers(t, r.next, 1)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", left)) // also of one that has ended if its parent has not asked yet
	if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", r.Process.Pid)) {
		t.Errorf("sidekeeper is the parent of what the run before left:\n%s", status)
	}
}

// openTerminal opens a terminal from both sides: that of the person, and that of the programs.
func openTerminal(t *testing.T) (person, programs *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	programs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { programs.Close() })
	return person, programs
}

func TestWhoWaitsAtATerminalIsToldForWhom(t *testing.T) {
	person, programs := openTerminal(t)
	server := scripted.Start(t)
	r := newRunner(server.Target, "lock", "run", "orders", "--", os.Args[0], "environment")
	r.Stderr = programs
	r.begin(t)
	call := server.NextAcquire()
	call.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Queued{Queued: &lockv1.Queued{
		Position: 2, Holders: []*lockv1.Contender{{Owner: "node-1/4711"}, {}},
	}}})
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(person).ReadString('\n')
		said <- line
	}()
	want := "sidekeeper: waiting for lock orders: 2 ahead, held by node-1/4711, a holder without a name\r\n"
	select {
	case line := <-said:
		if line != want {
			t.Errorf("%q", line)
		}
	case <-time.After(patience):
		t.Error("nothing is said")
	}
	call.Grant(1)
	wantNext(t, r, "orders 1 false orders:1")
}

func TestACommandCannotBeSuspendedFromItsTerminalAndEndsFromThere(t *testing.T) {
	person, programs := openTerminal(t)
	server := scripted.Start(t)
	r := newRunner(server.Target, "lock", "run", "orders", "--", os.Args[0], "obey")
	r.Stdin, r.Stderr = programs, programs
	r.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	r.begin(t)
	server.NextAcquire().Grant(1)
	wantNext(t, r, "ready")
	person.WriteString("\x1a") // Ctrl-Z
	said := make(chan string, 10)
	go func() {
		for lines := bufio.NewScanner(person); lines.Scan(); {
			said <- lines.Text()
		}
	}()
	for !strings.Contains(receive(t, said), "cannot be suspended") {
	}
	person.WriteString("\x03") // Ctrl-C
	ended := make(chan struct{})
	go func() {
		for r.lines.Scan() {
		}
		close(ended)
	}()
	receive(t, ended)
	if r.Wait(); r.ProcessState.ExitCode() != exit.Signal+int(syscall.SIGINT) {
		t.Errorf("it ended with %v", r.ProcessState)
	}
}

func TestACommandMayAskOnTheTerminalWhateverItsInputIs(t *testing.T) {
	person, programs := openTerminal(t)
	server := scripted.Start(t)
	r := newRunner(server.Target, "lock", "run", "orders", "--", os.Args[0], "ask")
	r.Stderr = programs
	r.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	r.begin(t)
	server.NextAcquire().Grant(1)
	person.WriteString("secret\n")
	wantNext(t, r, "read secret")
	if r.Wait(); r.ProcessState.ExitCode() != 0 {
		t.Errorf("it ended with %v", r.ProcessState)
	}
}

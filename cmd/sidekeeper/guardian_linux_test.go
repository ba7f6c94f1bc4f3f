package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
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
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// freeze stops a process, and returns when none of its threads does anything more.
func freeze(t *testing.T, process int) {
	t.Helper()
	syscall.Kill(process, syscall.SIGSTOP)
	for deadline := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("it does not stop: %v\n%s", err, status)
		}
		if strings.Contains(string(status), "\nState:\tT") {
			return
		}
	}
}

func TestALockIsKeptWhileItsKilledRunnersCommandLives(t *testing.T) {
	t.Parallel()
	s, _ := develop(t)
	first := start(t, s.address, "lock", "run", "job", "--", os.Args[0], "family", "parent")
	guardian := first.numbers(1)[0]
	freeze(t, guardian)
	// The kernel wakes a process group that is left without a parent in its session. This member of it keeps its parent.
	member := exec.Command("sleep", "1000")
	member.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: guardian}
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		member.Process.Kill()
		member.Wait()
	}()
	first.signal(syscall.SIGKILL)
	next := []string{"job", "--", os.Args[0], "environment"}
	start(t, s.address, append([]string{"lock", "run", "--wait", "500ms"}, next...)...).want(t, exit.NotObtained, "WAIT_TIMEOUT")
	syscall.Kill(guardian, syscall.SIGCONT)
	start(t, s.address, append([]string{"lock", "run"}, next...)...).want(t, 3)
}

func TestNothingOfACommandIsLeftWhenItsGuardianIsKilled(t *testing.T) {
	t.Parallel()
	for _, number := range []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT} { // with the latter, a Go program exits with 2
		t.Run(number.String(), func(t *testing.T) {
			t.Parallel()
			server := scripted.Start(t)
			released := make(chan struct{}, 1)
			server.Release = func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
				released <- struct{}{}
				return &lockv1.ReleaseResponse{}, nil
			}
			r := start(t, server.Target, "lock", "run", "orders", "--", os.Args[0], "family", "parent", "stay", "session")
			server.NextAcquire().Grant(1)
			processes := r.numbers(3)
			syscall.Kill(processes[0], number)
			receive(t, released)
			wantNobody(t, processes, "when the lock is given up")
			r.want(t, exit.Signal+int(syscall.SIGKILL))
		})
	}
}

func TestNothingOfACommandOutlivesItsLockWhenItsGuardianIsFrozen(t *testing.T) {
	t.Parallel()
	revoked := &holdv1.RevocationRequested{Grace: durationpb.New(validity / 2)}
	for cause, end := range map[string]func(*scripted.Acquire){
		"broken": func(call *scripted.Acquire) {
			call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
		},
		"revoked": func(call *scripted.Acquire) { call.AskBack(revoked) },
		"at risk": func(*scripted.Acquire) {},
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			server := scripted.Start(t)
			var asked atomic.Pointer[time.Time] // when the question was sent that is answered, or later
			server.CheckHolds = func(ctx context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
				if asked.CompareAndSwap(nil, new(time.Now())) {
					return scripted.HoldsValidFor(request, validity), nil
				}
				return scripted.Frozen[lockv1.CheckRequest, lockv1.CheckResponse](ctx, request)
			}
			r := start(t, server.Target, "lock", "run", "orders", "--kill-grace", killGrace, "--", os.Args[0], "family", "parent", "stay", "session")
			leaveGrace(server)
			call := server.NextAcquire()
			call.Grant(1)
			processes := r.numbers(3)
			freeze(t, processes[0])
			end(call)
			for over := asked.Load().Add(validity); len(living(processes)) > 0 && time.Now().Before(over); {
				<-time.After(5 * time.Millisecond)
			}
			if wantNobody(t, processes, "when the validity is over"); t.Failed() {
				return
			}
			r.want(t, exit.Lost)
		})
	}
}

// A command may be a `lock run` itself, with a guardian of its own, which a guardian that has to kill finds among the rest.
func TestNothingOfACommandOutlivesALockWithinALock(t *testing.T) {
	t.Parallel()
	const flight = `sh "$0" &` // starts itself anew and ends, again and again, until its file is gone
	script := filepath.Join(t.TempDir(), "flight")
	if err := os.WriteFile(script, []byte(flight), 0o600); err != nil {
		t.Fatal(err)
	}
	server := scripted.Start(t)
	r := start(t, server.Target, "lock", "run", "outer", "--", "env", role+"=sidekeeper", os.Args[0], "lock", "run", "inner", "--",
		"sh", "-c", "sh "+script+" & echo started; wait; sleep 1000")
	outer := server.NextAcquire()
	outer.Grant(1)
	inner := server.NextAcquire()
	inner.Grant(2)
	r.wantLine(t, "started")
	r.signal(syscall.SIGKILL)
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
	t.Parallel()
	s := newConfigScene(t)
	s.put("app", "1")
	r := start(t, s.sidecar.Address(), "config", "watch", "app", "--exec", "sleep 0.1 & echo $!")
	left := r.numbers(1)[0]
	s.put("app", "2")
	r.numbers(1)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", left)) // also of one that has ended if its parent has not asked yet
	if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", r.process.Pid)) {
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
	t.Parallel()
	person, programs := openTerminal(t)
	server := scripted.Start(t)
	r := startAs(t, func(command *exec.Cmd) { command.Stderr = programs }, server.Target,
		"lock", "run", "orders", "--", os.Args[0], "environment")
	call := server.NextAcquire()
	call.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Queued{Queued: &holdv1.Queued{
		Position: 2, Holders: []*holdv1.Contender{{Owner: "node-1/4711"}, {}},
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
	r.wantLine(t, "orders 1 false orders:1")
}

func TestACommandCannotBeSuspendedFromItsTerminalAndEndsFromThere(t *testing.T) {
	t.Parallel()
	person, programs := openTerminal(t)
	server := scripted.Start(t)
	r := startAs(t, func(command *exec.Cmd) {
		command.Stdin, command.Stderr = programs, programs
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, server.Target, "lock", "run", "orders", "--", os.Args[0], "obey")
	server.NextAcquire().Grant(1)
	r.wantLine(t, "ready")
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
	r.want(t, exit.Signal+int(syscall.SIGINT))
}

func TestACommandMayAskOnTheTerminalWhateverItsInputIs(t *testing.T) {
	t.Parallel()
	person, programs := openTerminal(t)
	server := scripted.Start(t)
	r := startAs(t, func(command *exec.Cmd) {
		command.Stdin, command.Stderr = nil, programs
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	}, server.Target, "lock", "run", "orders", "--", os.Args[0], "ask")
	server.NextAcquire().Grant(1)
	person.WriteString("secret\n")
	r.wantLine(t, "read secret")
	r.want(t, 0)
}

package main

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func TestNothingOfACommandIsLeftWhenItsGuardianIsKilled(t *testing.T) {
	server := scripted.Start(t)
	released := make(chan struct{}, 1)
	server.Release = func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		released <- struct{}{}
		return &lockv1.ReleaseResponse{}, nil
	}
	r := startRunner(t, server.Target, "lock", "run", "orders", "--", os.Args[0], "family", "parent", "stay", "session")
	server.NextAcquire().Grant(1)
	processes := numbers(t, r.next, 3)
	syscall.Kill(processes[0], syscall.SIGKILL)
	receive(t, released)
	wantNobody(t, processes, "when the lock is given up")
	if r.Wait(); r.ProcessState.ExitCode() != exit.Signal+int(syscall.SIGKILL) {
		t.Errorf("exit code %d", r.ProcessState.ExitCode())
	}
}

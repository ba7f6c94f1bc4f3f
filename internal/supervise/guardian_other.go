//go:build !linux && !windows

package supervise

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the same for all processes. On macOS it goes on during sleep.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic("no CLOCK_MONOTONIC: " + err.Error())
	}
	return time.Duration(now.Nano())
}

func ownProgram() string {
	if own, err := os.Executable(); err == nil {
		return own
	}
	return os.Args[0]
}

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adoptOrphans is what only Linux can do: here the guardian finds what has stayed in the command's group.
func adoptOrphans() {}

// endGuardian has a guardian that was stopped go on, and find that it has to kill. To kill it would leave the command to nobody.
func endGuardian(guardian *os.Process) { _ = guardian.Signal(syscall.SIGCONT) }

func startGuardian(guardian *exec.Cmd) error { return guardian.Start() }

func allowOrphans(*exec.Cmd) {}

func endOrphans(*exec.Cmd) {}

// ReapOrphans does nothing: no orphan comes here.
func ReapOrphans(context.Context) {}

func (g *guardian) killAll() { _ = syscall.Kill(-g.group, syscall.SIGKILL) }

package supervise

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bootTime goes on while the machine is suspended, and is the same for all processes.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("no CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(now.Nano())
}

// ownProgram is this program's file, also when another version has taken its name.
func ownProgram() string {
	const running = "/proc/self/exe"
	if _, err := os.Stat(running); err == nil {
		return running
	}
	return os.Args[0]
}

// childAttributes have the kernel kill the child when the thread dies that has started it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes this process the parent of all that its children leave behind, whatever group or session that is in.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // since Linux 3.4; without it, its group is what is found
}

// killAll kills the command's group and whatever else it has started. What is started meanwhile is left for the next time.
func (g *guardian) killAll() {
	if g.status == nil || g.groupLives() {
		_ = syscall.Kill(-g.group, syscall.SIGKILL)
	}
	killOffspring()
}

func killOffspring() {
	for _, process := range offspring(os.Getpid()) {
		_ = syscall.Kill(process, syscall.SIGKILL)
	}
}

// endGuardian ends a guardian that does not do what it is told: the kernel kills its command, and endOffspring the rest.
func endGuardian(guardian *os.Process) { _ = guardian.Kill() } // it may have ended

// endOffspring returns when this process has no child any more, and kills those that it has: what a guardian that was killed has
// left to it.
func endOffspring() {
	for {
		killOffspring()
		switch process, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
		case errors.Is(err, syscall.ECHILD):
			return
		case process == 0:
			<-time.After(shortestLook)
		}
	}
}

// offspring are all processes that this one, or one of them, is the parent of.
func offspring(ancestor int) []int {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc") // without it there is the group
	for _, entry := range entries {
		if process, err := strconv.Atoi(entry.Name()); err == nil {
			parent := parentOf(entry.Name())
			children[parent] = append(children[parent], process)
		}
	}
	found := slices.Clone(children[ancestor])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// parentOf reads a process's line: number, (name), state, parent, … The name may have any character in it.
func parentOf(process string) int {
	line, _ := os.ReadFile("/proc/" + process + "/stat") //nolint:gosec // the kernel's; it may be gone
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

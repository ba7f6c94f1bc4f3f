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

// killAll kills whatever the command has started, and what is left of its group. What is started meanwhile is left for the next time.
func (g *guardian) killAll() {
	killOffspring()
	if g.status == nil || g.groupLives() {
		_ = syscall.Kill(-g.group, syscall.SIGKILL)
	}
}

const (
	// mostLooks bounds how often is looked for what was started since the look before.
	mostLooks = 5
	// dyingTime is how long one attempt to kill waits for what it has killed.
	dyingTime = 50 * time.Millisecond
)

// killOffspring kills all that descend from this process. They are stopped before, so that none starts another, and each is killed when
// those are dead that descend from it: there may be a guardian among them, whose connection ends with it. What takes long to die is
// left for the next time, with its ancestors.
func killOffspring() {
	var found, before []relative
	for range mostLooks {
		if found, before = offspring(os.Getpid()), found; slices.Equal(found, before) {
			break
		}
		for _, r := range found {
			_ = unix.Close(r.signal(unix.SIGSTOP))
		}
	}
	parents, dying, over := map[int]bool{}, []int(nil), time.Now().Add(dyingTime)
	for _, r := range slices.Backward(found) {
		if parents[r.process] {
			dead := awaitDeaths(dying, over)
			if dying = nil; !dead {
				return
			}
		}
		parents[r.parent] = true
		dying = append(dying, r.signal(unix.SIGKILL))
	}
	awaitDeaths(dying, over)
}

// awaitDeaths closes the descriptors. It says whether the processes behind them were dead by then.
func awaitDeaths(descriptors []int, by time.Time) (dead bool) {
	dead = true
	for _, descriptor := range descriptors {
		if descriptor >= 0 {
			dead = awaitDeath(int32(descriptor), by) && dead
			_ = unix.Close(descriptor)
		}
	}
	return dead
}

func awaitDeath(descriptor int32, by time.Time) bool {
	for {
		left := max(0, time.Until(by))
		ready, err := unix.Poll([]unix.PollFd{{Fd: descriptor, Events: unix.POLLIN}}, int(left.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return ready > 0
		}
	}
}

// A relative is a process that was found to descend from this one.
type relative struct{ process, parent int }

// signal sends a signal, but not to a process that has another parent than the one that was found: the number may be another's by now.
// It returns a descriptor of the process, or −1 if it was sent none. Whoever is stopped takes along the group that it leads.
func (r relative) signal(number syscall.Signal) (descriptor int) {
	descriptor, err := unix.PidfdOpen(r.process, 0) // since Linux 5.3
	if parentOf(strconv.Itoa(r.process)) != r.parent {
		_ = unix.Close(descriptor)
		return -1
	}
	if group, _ := unix.Getpgid(r.process); number == unix.SIGSTOP && group == r.process {
		_ = syscall.Kill(-group, number)
	}
	if err != nil {
		_ = syscall.Kill(r.process, number)
		return -1
	}
	if unix.PidfdSendSignal(descriptor, number, nil, 0) != nil { // it has ended, or has become another user's
		_ = unix.Close(descriptor)
		return -1
	}
	return descriptor
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

// offspring are all processes that this one, or one of them, is the parent of, in the order of generations.
func offspring(ancestor int) []relative {
	children := map[int][]relative{}
	entries, _ := os.ReadDir("/proc") // without it there is the group
	for _, entry := range entries {
		if process, err := strconv.Atoi(entry.Name()); err == nil {
			parent := parentOf(entry.Name())
			children[parent] = append(children[parent], relative{process, parent})
		}
	}
	found := slices.Clone(children[ancestor])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].process]...)
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

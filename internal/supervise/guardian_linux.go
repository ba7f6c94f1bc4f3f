package supervise

import (
	"bytes"
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
	g.signalGroup(unix.SIGSTOP) // all at once, so that none of it starts anything while the others are looked for
	killOffspring()
	g.signalGroup(unix.SIGKILL)
}

// signalGroup signals the command's group for as long as that has its number.
func (g *guardian) signalGroup(number syscall.Signal) {
	if g.status == nil || g.groupLives() {
		_ = syscall.Kill(-g.group, number)
	}
}

const (
	// killingTime is for how long one attempt to kill, with its looks, waits for what it has killed.
	killingTime = KillTime * 4 / 5
	// leastLooks are what an attempt takes to kill anything.
	leastLooks = 2
)

// killOffspring kills all that descend from this process, except what is spared. They are stopped before, so that none starts another, and
// each is killed when those are dead that descend from it: there may be a guardian among them, whose connection ends with it. A process
// that is being started is not found before it is there; so nothing is killed that had descendants until they were dead before a look that
// finds no other. What takes long to die is left for the next time, with its ancestors.
func killOffspring() {
	var found family
	for looks, over := 0, time.Now().Add(killingTime); looks < leastLooks || time.Now().Before(over); looks++ {
		if found = found.pursue(); found == nil {
			return
		}
		<-time.After(time.Millisecond)
	}
}

// A family is what was found to descend from this process, in the order of generations.
type family []relative

// pursue looks for the family anew, after a look that has found f. It kills what is without descendants in both, and stops the others. It
// returns nil if all are dead.
func (f family) pursue() family {
	ours.mu.Lock() // no guardian is started meanwhile
	defer ours.mu.Unlock()
	before, found := f.youngest(), offspring(os.Getpid(), ours.isSpared)
	youngest := found.youngest()
	if len(youngest) == 0 {
		return nil
	}
	for _, r := range found {
		if before[r] && youngest[r] {
			r.signal(unix.SIGKILL)
		} else {
			r.signal(unix.SIGSTOP)
		}
	}
	return found
}

// youngest says of those that live whether none of their descendants does.
func (f family) youngest() map[relative]bool {
	parents, youngest := map[int]bool{}, map[relative]bool{}
	for _, r := range slices.Backward(f) {
		if _, dead := look(r.process); dead && !parents[r.process] {
			continue
		}
		parents[r.parent] = true
		youngest[r] = !parents[r.process]
	}
	return youngest
}

// A relative is a process that was found to descend from this one.
type relative struct{ process, parent int }

// signal sends a signal, but not to a process that has another parent than the one that was found: the number may be another's by now.
// Whoever is stopped takes along the group that it leads.
func (r relative) signal(number syscall.Signal) {
	descriptor, err := unix.PidfdOpen(r.process, 0) // since Linux 5.3
	if err == nil {
		defer unix.Close(descriptor)
	}
	if parent, _ := look(r.process); parent != r.parent {
		return
	}
	if group, _ := unix.Getpgid(r.process); number == unix.SIGSTOP && group == r.process {
		_ = syscall.Kill(-group, number)
	}
	if err != nil {
		_ = syscall.Kill(r.process, number)
		return
	}
	_ = unix.PidfdSendSignal(descriptor, number, nil, 0) // it may have ended, or have become another user's
}

// endGuardian ends a guardian that does not do what it is told: the kernel kills its command, and endOrphans the rest.
func endGuardian(guardian *os.Process) { _ = guardian.Kill() } // it may have ended

// processes are all that this one sees.
func processes() (all family) {
	entries, _ := os.ReadDir("/proc") // without it there is the group
	for _, entry := range entries {
		if process, err := strconv.Atoi(entry.Name()); err == nil {
			parent, _ := look(process)
			all = append(all, relative{process, parent})
		}
	}
	return all
}

// offspring are all processes that this one, or one of them, is the parent of, in the order of generations. Those that are spared are missing,
// with their descendants.
func offspring(ancestor int, isSpared func(relative) bool) family {
	children := map[int][]relative{}
	for _, r := range processes() {
		children[r.parent] = append(children[r.parent], r)
	}
	found := family(slices.DeleteFunc(slices.Clone(children[ancestor]), isSpared))
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].process]...)
	}
	return found
}

// look reads a process's line: number, (name), state, parent, … The name may have any character in it. Dead is a process that is gone,
// or of which nothing is left but its status.
func look(process int) (parent int, dead bool) {
	const state, parentNumber, threads = 0, 1, 17                      // behind the name
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(process) + "/stat") // the kernel's; it may be gone
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) <= threads {
		return 0, true
	}
	parent, _ = strconv.Atoi(string(fields[parentNumber]))
	left, _ := strconv.Atoi(string(fields[threads]))
	return parent, left <= 1 && bytes.ContainsAny(fields[state], "ZX") // which is the first thread's
}

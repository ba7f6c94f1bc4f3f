package supervise

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// ours are the children of this process: the guardians that it has started, and the orphans that guardians have left to it. Each guardian that
// lives is the parent of what its own command leaves behind. So the orphans of a guardian that was killed are told from all that others guard.
var ours = offsprings{guardians: map[int]*exec.Cmd{}, allowed: map[int]bool{}}

type offsprings struct {
	mu        sync.Mutex
	guardians map[int]*exec.Cmd // that have not ended, by the numbers of their processes
	allowed   map[int]bool      // orphans of commands that have ended by themselves, by number: they may go on. A number is theirs until reap
}

// startGuardian starts a guardian. None is taken for an orphan, since that is looked for under the same lock.
func startGuardian(guardian *exec.Cmd) error {
	ours.mu.Lock()
	defer ours.mu.Unlock()
	err := guardian.Start()
	if err == nil {
		ours.guardians[guardian.Process.Pid] = guardian
	}
	return err
}

// forget has a guardian be none of ours, which has ended. The lock is held.
func (o *offsprings) forget(guardian *exec.Cmd) {
	if number := guardian.Process.Pid; o.guardians[number] == guardian {
		delete(o.guardians, number)
	}
}

// isSpared says whether a child of this process is none that has to go. The lock is held.
func (o *offsprings) isSpared(r relative) bool {
	return o.guardians[r.process] != nil || o.allowed[r.process]
}

// allowOrphans lets what a guardian, which has said farewell, has left to this process go on. If another guardian has just ended, an orphan may
// be that one's: then none is allowed.
func allowOrphans(guardian *exec.Cmd) {
	ours.mu.Lock()
	defer ours.mu.Unlock()
	ours.forget(guardian)
	found := childrenOf(os.Getpid())
	for number := range ours.guardians {
		if _, dead := look(number); dead {
			return
		}
	}
	for _, r := range found {
		if ours.guardians[r.process] == nil {
			ours.allowed[r.process] = true
		}
	}
}

// endOrphans returns when nothing is left of what a guardian that was killed has left to this process, and kills that.
func endOrphans(guardian *exec.Cmd) {
	ours.mu.Lock()
	ours.forget(guardian)
	ours.mu.Unlock()
	endOffspring()
}

// endOffspring kills all that descends from this process, and waits for it. Exceptions: guardians and what they guard, and orphans that may go
// on.
func endOffspring() {
	for killOffspring(); ours.reap() > 0; killOffspring() {
		<-time.After(shortestLook)
	}
}

// reap takes note of the orphans that have ended, and says how many are left that have to go. It leaves guardians to Child.wait.
func (o *offsprings) reap() (left int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range childrenOf(os.Getpid()) {
		if o.guardians[r.process] != nil {
			continue
		}
		if _, dead := look(r.process); dead {
			if number, err := syscall.Wait4(r.process, nil, syscall.WNOHANG, nil); number == r.process || err != nil {
				delete(o.allowed, r.process)
				continue
			}
		}
		if !o.allowed[r.process] {
			left++
		}
	}
	return left
}

// ReapOrphans takes note of orphans that end, until ctx ends: a process that runs many commands would keep what is left of them. It is for a
// process whose children are all guardians.
func ReapOrphans(ctx context.Context) {
	deaths := make(chan os.Signal, 1)
	signal.Notify(deaths, syscall.SIGCHLD)
	defer signal.Stop(deaths)
	for {
		select {
		case <-ctx.Done():
			return
		case <-deaths:
			ours.reap()
		}
	}
}

func childrenOf(parent int) (children family) {
	for _, r := range processes() {
		if r.parent == parent {
			children = append(children, r)
		}
	}
	return children
}

package ensemble

import (
	"io"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// A process is a server's Java virtual machine, from when it has started.
type process struct {
	command *exec.Cmd
	exited  chan struct{} // closed when it has ended and been waited for
}

// send sends a signal to the process and whatever it has started. One that has ended gets none: its number may be
// another's by now, but not before it has been waited for, and then exited is closed.
func (p *process) send(signal syscall.Signal) {
	select {
	case <-p.exited:
	default:
		syscall.Kill(-p.command.Process.Pid, signal) // fails only if the process has ended just now
	}
}

// running tells whether the process has not ended.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// A nursery starts processes, all from one thread that lives until it is closed: the kernel kills a child when the
// thread that started it ends, not the whole program.
type nursery struct {
	orders  chan func()
	running sync.WaitGroup
}

func newNursery() *nursery {
	n := &nursery{orders: make(chan func())}
	n.running.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for order := range n.orders {
			order()
		}
	})
	return n
}

// start starts a command and waits for it in the background. The log is closed when it has ended or not begun.
func (n *nursery) start(command *exec.Cmd, log io.Closer) (*process, error) {
	command.SysProcAttr = attributes()
	started := make(chan error)
	n.orders <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		log.Close()
		return nil, err
	}
	p := &process{command: command, exited: make(chan struct{})}
	n.running.Go(func() {
		command.Wait() // how it ended is in ProcessState
		log.Close()
		close(p.exited)
	})
	return p, nil
}

// close returns when the processes have been waited for. They must have ended or been killed.
func (n *nursery) close() {
	close(n.orders)
	n.running.Wait()
}

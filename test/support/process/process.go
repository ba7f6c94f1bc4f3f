// Package process runs programs that can be frozen and killed, and that do not outlive the program that started them,
// however that ends (on Linux; elsewhere they outlive one that is killed).
package process

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// A Process is a program, from when it has started. All its methods may be called at any time from any goroutine, and those
// that signal do nothing to one that has ended. A nil Process is one that does not run.
type Process struct {
	command *exec.Cmd
	exited  chan struct{} // closed when it has ended and been waited for
}

// ID is the number of the process.
func (p *Process) ID() int { return p.command.Process.Pid }

// Exited is closed when the process has ended and all its output has been written.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State is how the process has ended; nil until Exited is closed.
func (p *Process) State() *os.ProcessState {
	if p.Running() {
		return nil
	}
	return p.command.ProcessState
}

// Send sends a signal to the process and whatever it has started. One that has ended gets none: its number may be
// another's by now, but not before it has been waited for, and then exited is closed.
func (p *Process) Send(signal syscall.Signal) {
	if p.Running() {
		syscall.Kill(-p.command.Process.Pid, signal) // fails only if the process has ended just now
	}
}

// Running tells whether the process has not ended.
func (p *Process) Running() bool {
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

// End sends a signal that ends the process, and returns when it has ended.
func (p *Process) End(signal syscall.Signal) {
	if p != nil {
		p.Send(signal)
		<-p.exited
	}
}

// Kill ends the process at once, as the kernel does that is out of memory, and returns when it has ended.
func (p *Process) Kill() { p.End(syscall.SIGKILL) }

// Freeze suspends the process, and returns when it has stopped.
func (p *Process) Freeze() {
	if p.Running() {
		p.Send(syscall.SIGSTOP)
		awaitStopped(p.ID())
	}
}

// Continue ends Freeze.
func (p *Process) Continue() { p.Send(syscall.SIGCONT) }

// A Nursery starts processes, all from one thread that lives until it is closed: the kernel kills a child when the
// thread that started it ends, not the whole program.
type Nursery struct {
	orders  chan func()
	running sync.WaitGroup
}

// NewNursery makes a nursery. The caller must close it.
func NewNursery() *Nursery {
	n := &Nursery{orders: make(chan func())}
	n.running.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for order := range n.orders {
			order()
		}
	})
	return n
}

// Start starts a command, in a process group of its own, and waits for it in the background. The log is closed when it has
// ended or not begun.
func (n *Nursery) Start(command *exec.Cmd, log io.Closer) (*Process, error) {
	command.SysProcAttr = attributes()
	started := make(chan error)
	n.orders <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		log.Close()
		return nil, err
	}
	p := &Process{command: command, exited: make(chan struct{})}
	n.running.Go(func() {
		command.Wait() // how it ended is in ProcessState
		log.Close()
		close(p.exited)
	})
	return p, nil
}

// Close returns when the processes have been waited for. They must have ended or been killed.
func (n *Nursery) Close() {
	close(n.orders)
	n.running.Wait()
}

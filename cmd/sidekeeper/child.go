package main

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A child is a command in a process group of its own.
type child struct {
	command *exec.Cmd
	exited  chan struct{}

	mu   sync.Mutex
	over bool
}

// outputTime is how long output is read on that a dead command's own children still write.
const outputTime = time.Second

// startChild starts a command, and kills it when this process dies, where the system can do that.
func startChild(
	argv, environment []string, stdin io.Reader, stdout, stderr io.Writer,
) (*child, error) {
	command := exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // what the user wants run; ended by process group
	command.Env, command.Stdin, command.Stdout, command.Stderr = environment, stdin, stdout, stderr
	command.WaitDelay = outputTime
	foreground := terminalOf(stdin)
	command.SysProcAttr = childAttributes()
	command.SysProcAttr.Foreground, command.SysProcAttr.Ctty = foreground >= 0, max(foreground, 0)

	c := &child{command: command, exited: make(chan struct{})}
	started := make(chan error)
	go c.live(started, foreground)
	return c, <-started
}

// live starts the command and waits for its end on one thread: on Linux a child is killed when the thread dies that
// started it.
func (c *child) live(started chan<- error, foreground int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.exited)
	err := c.command.Start()
	started <- err
	if err != nil {
		return
	}
	_ = c.command.Wait() // ProcessState tells more
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	takeTerminalBack(foreground)
}

// signal sends a signal to the command's process group, and says whether there was one. The group is never signalled
// when the command is known to be over: its number may be another's.
func (c *child) signal(number syscall.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.over && syscall.Kill(-c.command.Process.Pid, number) == nil
}

// exitCode is the command's, or 128 and the number of the signal that ended it. Only after exited.
func (c *child) exitCode() int {
	if status, ok := c.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return c.command.ProcessState.ExitCode()
}

// terminalOf is the descriptor of the terminal that this process reads in the foreground, or −1. A command in a group
// of its own can only read a terminal if its group is made the foreground.
func terminalOf(stdin io.Reader) int {
	file, ok := stdin.(*os.File)
	if !ok {
		return -1
	}
	descriptor := int(file.Fd())
	if foreground, err := foregroundGroup(descriptor); err != nil || foreground != syscall.Getpgrp() {
		return -1
	}
	return descriptor
}

//go:build unix && !linux

package process

import "syscall"

// attributes puts a process into a group of its own, so that a Ctrl-C at the terminal does not reach it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitStopped does not wait: a process that was sent SIGSTOP stops soon.
func awaitStopped(int) {}

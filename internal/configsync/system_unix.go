//go:build !windows

package configsync

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock of a file for this process, or fails if another one has it.
func lockFile(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// signalNumber is 0 for a name that no signal has.
func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }

func sendSignal(pid int, number syscall.Signal) error {
	if err := syscall.Kill(pid, number); errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("there is no process %d to send %s to", pid, unix.SignalName(number))
	} else if err != nil {
		return fmt.Errorf("send %s to process %d: %w", unix.SignalName(number), pid, err)
	}
	return nil
}

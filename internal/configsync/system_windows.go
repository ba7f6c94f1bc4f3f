package configsync

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// lockFile takes the lock of a file for this process, or fails if another one has it.
func lockFile(file *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
}

// signalNumber is any that is not 0: sendSignal says what is wrong.
func signalNumber(string) syscall.Signal { return syscall.SIGHUP }

func sendSignal(int, syscall.Signal) error { return errors.New("--signal: Windows has no signals") }

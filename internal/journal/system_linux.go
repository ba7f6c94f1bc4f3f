package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockPatience is for how long a process that is ending may still have the directory.
const lockPatience = 2 * time.Second

// bootID tells this boot of this machine from all others.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// lockFile returns the file with a lock on it that ends with the process, or when the file is closed.
func lockFile(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|neverWaits, 0o600) //nolint:gosec // in our own directory
	if err != nil {
		return nil, err
	}
	over, again := time.NewTimer(lockPatience), time.NewTicker(10*time.Millisecond)
	defer over.Stop()
	defer again.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), file.Close())
		}
		select {
		case <-again.C:
		case <-over.C:
			return nil, errors.Join(errors.New("another process has it"), file.Close())
		}
	}
}

// inMemory says whether the directory's file system keeps nothing on a disk.
func inMemory(dir string) bool {
	var found unix.Statfs_t
	err := unix.Statfs(dir, &found)
	return err == nil && (found.Type == unix.TMPFS_MAGIC || found.Type == unix.RAMFS_MAGIC)
}

// neverWaits opens no link, and waits for no reader or writer of a FIFO.
const neverWaits = unix.O_NOFOLLOW | unix.O_NONBLOCK

// isOurs says whether a file belongs to the user of this process.
func isOurs(info fs.FileInfo) bool {
	of, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(of.Uid) == os.Geteuid()
}

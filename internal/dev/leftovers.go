//go:build !windows

package dev

import (
	"os"
	"path/filepath"
	"syscall"
)

// living is a file in a sidecar's folder. The sidecar's process holds a lock on it, which the kernel ends with the process.
const living = "sidekeeper-dev.lock"

// mark has a folder be a living process's until the file is closed. It names the file once that is locked: one without a lock is a dead one's.
func mark(folder string) *os.File {
	file, err := os.Create(filepath.Join(folder, living+".new")) //nolint:gosec // in the folder that it has just made
	if err == nil && syscall.Flock(int(file.Fd()), syscall.LOCK_EX) == nil {
		_ = os.Rename(file.Name(), filepath.Join(folder, living)) // without it, the folder is never taken for a leftover
	}
	return file
}

// clearLeftovers removes the folders that are private to this user and have such a file, on which no process holds a lock.
func clearLeftovers() {
	marks, _ := filepath.Glob(filepath.Join(os.TempDir(), "sidekeeper-*", living))
	for _, name := range marks {
		folder, err := os.Lstat(filepath.Dir(name))
		if err != nil || folder.Mode() != os.ModeDir|0o700 || folder.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
			continue
		}
		if file, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0); err == nil { //nolint:gosec // the folder is this user's alone
			locked := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
			opened, _ := file.Stat()
			if now, err := os.Lstat(name); locked && err == nil && os.SameFile(opened, now) { // another process has not cleared it meanwhile
				_ = os.RemoveAll(filepath.Dir(name)) // what stays is tried again by the next one
			}
			_ = file.Close()
		}
	}
}

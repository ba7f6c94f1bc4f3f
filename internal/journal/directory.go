package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
)

const (
	markName      = "sidekeeper-state" // an empty file that says whose directory this is
	lockName      = "lock"
	suffix        = ".lease"
	unfinished    = ".new"
	longestRecord = 64 << 10 // bytes that a record has at most
)

// errForeign means that a file is not one of this program's: no regular file, another user's, or too large. It is neither read nor deleted.
var errForeign = errors.New("no regular file of this user's of at most 64 KiB")

// ofKey is a name that records have, or what of them is not finished.
var ofKey = regexp.MustCompile(`^[0-9a-z]{1,64}\.(lease|new)$`)

// occupy makes sure that a directory is a sidecar's, and locks it. One that is missing is made, with mode 0700. One that is there without a mark
// is left as it is: it is refused if others may write in it, or if it holds what no sidecar has put there.
func occupy(dir string) (lock *os.File, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := keepToUser(dir); err != nil {
		return nil, err
	}
	if err := checkEntries(dir); err != nil {
		return nil, err
	}
	if lock, err = lockFile(filepath.Join(dir, lockName)); err != nil {
		return nil, err
	}
	mark, err := os.OpenFile(filepath.Join(dir, markName), os.O_RDWR|os.O_CREATE|neverWaits, 0o600) //nolint:gosec // in our own directory
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, mark.Close()
}

// keepToUser refuses a directory in which others may write. One with a mark was a sidecar's, and has been given to a group since, as the kubelet
// does with a volume that has an fsGroup: that is taken back.
func keepToUser(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	switch {
	case mode&0o022 == 0:
		return nil
	case isMarked(dir) && isOurs(info):
		return os.Chmod(dir, info.Mode()&^0o022)
	}
	return fmt.Errorf("others may write in it, by its mode %04o: name a directory below it, which is then made", mode)
}

// cannotWrite says whether an error is the file system's, whatever directory had been named.
func cannotWrite(err error) bool {
	system := []error{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO}
	return slices.ContainsFunc(system, func(of error) bool { return errors.Is(err, of) })
}

func isMarked(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, markName))
	return err == nil && info.Mode().IsRegular()
}

// checkEntries refuses a directory without a mark that holds anything of others. Earlier versions made no mark, and always a lock.
func checkEntries(dir string) error {
	if isMarked(dir) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	_, unlocked := os.Lstat(filepath.Join(dir, lockName))
	for _, entry := range entries {
		if entry.Name() != lockName && entry.Name() != markName && (unlocked != nil || !ofKey.MatchString(entry.Name())) {
			return fmt.Errorf("it holds %q, which is no state of a sidecar: name one that is empty, or one below it, which is then made", entry.Name())
		}
	}
	return nil
}

// readOwn reads a file of this program's. It waits for no writer, follows no link and reads no more than a record has.
func readOwn(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|neverWaits, 0) //nolint:gosec // in our own directory
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errForeign, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !isOwn(info) {
		return nil, errForeign
	}
	return io.ReadAll(io.LimitReader(file, longestRecord))
}

// isOwn says whether a file is one that this program may have made.
func isOwn(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Size() <= longestRecord && isOurs(info)
}

// empty takes away what a file says that cannot be deleted.
func empty(name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|neverWaits, 0) //nolint:gosec // in our own directory
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(0), file.Close())
}

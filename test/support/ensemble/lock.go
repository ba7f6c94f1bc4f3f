package ensemble

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes a lock between processes on a file, which it makes if need be and leaves there. It waits as long as another
// process has the lock.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil // which unlocks
}

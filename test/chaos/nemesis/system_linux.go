package nemesis

import "golang.org/x/sys/unix"

// fullAt is how long files may become for a process that is to find its disk full.
const fullAt = 1 << 10

// fillDisk lets a process write no more to files that are not small.
func fillDisk(process int) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(process, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		return err
	}
	limit.Cur = fullAt
	return unix.Prlimit(process, unix.RLIMIT_FSIZE, &limit, nil)
}

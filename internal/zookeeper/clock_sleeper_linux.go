//go:build sleeper

package zookeeper

import (
	"encoding/binary"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// sleptFile names the file that says, in eight bytes, for how many nanoseconds the machine has slept. No test can suspend a
// machine. A program that is built with the tag `sleeper`, and is for tests alone, finds its clock ahead by as much
// as the file says, while its timers have stood still, as they do when a machine sleeps.
const sleptFile = "SIDEKEEPER_TEST_SLEPT"

var slept = sync.OnceValue(func() *os.File {
	file, err := os.Open(os.Getenv(sleptFile))
	if err != nil {
		panic(sleptFile + ": " + err.Error())
	}
	return file
})

func now() instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("the kernel has no CLOCK_BOOTTIME: " + err.Error())
	}
	var ahead [8]byte
	if _, err := slept().ReadAt(ahead[:], 0); err != nil {
		panic(sleptFile + ": " + err.Error())
	}
	return instant(t.Nano() + int64(binary.LittleEndian.Uint64(ahead[:])))
}

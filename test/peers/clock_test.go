package peers

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// now reads the machine's clock in nanoseconds.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(machineClock, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// mustShareTheClock fails the test if what the program notes cannot be compared with what others do.
func mustShareTheClock(t *testing.T, p *peer) {
	t.Helper()
	before := now()
	answer := p.tell(t, "clock")
	after := now()
	shown, err := strconv.ParseInt(answer, 10, 64)
	must(t, err)
	if shown < before || shown > after {
		t.Fatalf("%s reads %d on a clock that went from %d to %d", p.command.Path, shown, before, after)
	}
}

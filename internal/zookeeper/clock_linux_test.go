package zookeeper

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/full"
)

// readTheClock has this program print the clock and nothing else.
const readTheClock = "SIDEKEEPER_TEST_CLOCK"

// No test can suspend the machine. In a time namespace of its own a process finds the clocks of one that was suspended for a day:
// those that count suspended time are a day ahead of those that do not.
func TestTheClockCountsTheTimeInWhichTheMachineWasSuspended(t *testing.T) {
	if os.Getenv(readTheClock) != "" {
		fmt.Printf("clock %d\n", now()) //nolint:forbidigo // for the process that has started this one
		return
	}
	const day = 24 * time.Hour
	before := now()
	shown := clockAfterSuspension(t, day).since(before)
	if shown < day || shown > day+time.Minute {
		t.Errorf("after a day the clock shows %v more", shown)
	}
}

// clockAfterSuspension is what the clock shows in a time namespace. Root may make one, and whoever may make user namespaces.
func clockAfterSuspension(t *testing.T, suspended time.Duration) instant {
	t.Helper()
	arguments := []string{
		"--time", fmt.Sprintf("--boottime=%d", int(suspended.Seconds())), "--fork",
		os.Args[0], "-test.run=^" + t.Name() + "$", "-test.count=1",
	}
	if os.Geteuid() != 0 {
		arguments = append([]string{"--user", "--map-root-user"}, arguments...)
	}
	reading := exec.CommandContext(t.Context(), "unshare", arguments...)
	reading.Env = append(os.Environ(), readTheClock+"=1")
	said, err := reading.CombinedOutput()
	if err != nil && os.Geteuid() != 0 {
		full.Lacks(t, "whoever is not root may make no time namespace here:", err, string(said))
	}
	if err != nil {
		t.Fatalf("no time namespace: %v\n%s", err, said)
	}
	_, rest, _ := strings.Cut(string(said), "clock ")
	number, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatalf("%v in %q", err, said)
	}
	return instant(number)
}

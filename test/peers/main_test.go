package peers

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/test/support/full"
)

var (
	acquisitions = flag.Int("acquisitions", 60, "how often contenders of different libraries hold a lock, lead, enter a barrier or take an item")
	numbers      = flag.Int("numbers", 200, "how many numbers are taken of a contended sequence")
	kills        = flag.Int("kills", 1, "how often each library's process is killed")
)

func TestMain(m *testing.M) {
	if library := os.Getenv(libraryVariable); library != "" {
		os.Exit(runPeer(library, os.Args[1:]))
	}
	full.AllNeed("a server, Java and Python")
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	code := m.Run()
	closeShared()
	os.RemoveAll(programs)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

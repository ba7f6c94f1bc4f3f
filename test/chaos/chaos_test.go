package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/support/full"
	"github.com/sidekeeper/sidekeeper/test/support/toolchain"
)

var rounds = flag.Int("rounds", 4, "how many rounds to play")

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == caller.Argument {
		if err := caller.Run(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "caller:", err)
			os.Exit(exitUnable)
		}
		os.Exit(0)
	}
	flag.Parse()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// The short campaign is one round each of a cut, of stopped clients, of killed sidecars and of a machine that sleeps. In all of
// them there are leases that end, and holds that are ended by force, while connections of those who count on them falter. On
// a machine that has too much to do a round may be invalid; none may show a violation, and one must count.
func TestAShortCampaignShowsNoViolation(t *testing.T) {
	full.Needs(t, "an ensemble, and minutes")
	var out, logged bytes.Buffer
	code := run(t.Context(), []string{
		"-sidecar", build(t), "-sleeper", build(t, "-tags=sleeper"), "-profile", fastTicks, "-nemesis", "N1|N5|N10|N21",
		"-rounds", fmt.Sprint(*rounds), "-out", cmp.Or(os.Getenv("KEEP_TEST_LOGS"), t.TempDir()),
	}, &out, &logged)
	t.Logf("%s\n%s", &logged, &out)
	switch {
	case code == exitViolated:
		t.Error("a promise was broken")
	case !bytes.Contains(out.Bytes(), []byte("# Chaos: no violation")):
		t.Error("there is no report")
	case bytes.Count(logged.Bytes(), []byte("INVALID")) >= bytes.Count(logged.Bytes(), []byte("operations (")):
		t.Error("no round counts")
	}
}

// build builds the sidecar, to look for races if the tests do.
func build(t *testing.T, options ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sidekeeper")
	if raced {
		options = append(options, "-race")
	}
	if err := toolchain.Build(t.Context(), path, append(options, "github.com/sidekeeper/sidekeeper/cmd/sidekeeper")...); err != nil {
		t.Fatal(err)
	}
	return path
}

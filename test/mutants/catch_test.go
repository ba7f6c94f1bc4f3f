package mutants

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/full"
)

var (
	all     = flag.Bool("all", false, "run the tests against all mutants, and not only against those that the record does not show as caught")
	rewrite = flag.Bool("record", false, "write the record of the mutants that are caught anew")
)

// kept is where the record lies in the tree.
const kept = ".ci/passed/mutants"

// A mutant that the record shows as caught is not run again, unless -all is given, until something of it changes: see Mutant.digest.
func TestEveryMutantIsCaught(t *testing.T) {
	full.Needs(t, "minutes")
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	now := digests(t, os.DirFS(root))
	text, err := os.ReadFile(filepath.Join(root, kept))
	if err != nil {
		t.Logf("all are run: %v", err)
	}
	record := readRecord(string(text)).standing(now)
	chosen := slices.DeleteFunc(slices.Clone(Table), func(m Mutant) bool { return m.Absent != "" || !*all && record[m.ID] != "" })
	t.Logf("%d mutants are not run, by the record %s", len(now)-len(chosen), kept)
	var mu sync.Mutex
	caught := map[string]bool{}
	began := time.Now()
	t.Cleanup(func() {
		t.Logf("%d mutants were run in %v", len(caught), time.Since(began).Round(time.Second))
		if *rewrite {
			record.note(now, caught)
			writeRecord(t, filepath.Join(root, kept), record)
		}
	})
	for _, m := range chosen {
		t.Run(m.ID, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				mu.Lock()
				defer mu.Unlock()
				caught[m.ID] = !t.Failed()
			})
			m.wantCaught(t)
		})
	}
}

func (m Mutant) wantCaught(t *testing.T) {
	t.Helper()
	overlay, err := m.Overlay(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Catchers {
		began := time.Now()
		times, err := catch(t.Context(), overlay, c)
		if err != nil {
			t.Errorf("%s: %v", m.Bug, err)
			continue
		}
		t.Logf("%s: said %d times, in %v: %s", c.Test, times, time.Since(began).Round(time.Second), c.Complaint)
	}
}

// digests is the record in which all mutants are caught.
func digests(t *testing.T, tree fs.FS) record {
	t.Helper()
	now := record{}
	for _, m := range Table {
		if m.Absent != "" {
			continue
		}
		digest, err := m.digest(tree)
		if err != nil {
			t.Fatalf("mutant %s: %v", m.ID, err)
		}
		now[m.ID] = digest
	}
	return now
}

func writeRecord(t *testing.T, path string, r record) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(r.text()), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// catch runs a test against a mutant and counts how often it complains as expected. That it does not is an error.
func catch(ctx context.Context, overlay string, by Catcher) (times int, err error) {
	command := exec.CommandContext(ctx, "go", arguments(overlay, by)...)
	command.Dir = filepath.Join("..", "..")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // which it passes on to the test
	command.WaitDelay = time.Minute
	said, err := command.CombinedOutput()
	return verdict(string(said), err, by)
}

func arguments(overlay string, by Catcher) []string {
	var exact []string
	for part := range strings.SplitSeq(by.Test, "/") {
		exact = append(exact, "^"+part)
	}
	exact[0] += "$"
	arguments := []string{
		"test", "-count=1", "-vet=off", "-ldflags=-w", "-timeout=15m", "-overlay=" + overlay, "-run=" + strings.Join(exact, "/"),
		"github.com/sidekeeper/sidekeeper/" + by.Package, // which may be of another module than this
	}
	if by.Schedules > 0 {
		arguments = append(arguments, fmt.Sprintf("-seeds=%d", by.Schedules))
	}
	return arguments
}

// verdict judges what a test said of a mutant, and how it ended.
func verdict(said string, err error, by Catcher) (times int, _ error) {
	var failed *exec.ExitError
	times = len(regexp.MustCompile(by.Complaint).FindAllString(said, -1))
	switch {
	case err == nil:
		return 0, fmt.Errorf("it survives %s in %s:\n%s", by.Test, by.Package, said)
	case !errors.As(err, &failed):
		return 0, fmt.Errorf("%s in %s: %w", by.Test, by.Package, err)
	case strings.Contains(said, "[build failed]"), strings.Contains(said, "[setup failed]"):
		return 0, fmt.Errorf("it does not compile:\n%s", said)
	case times == 0:
		return 0, fmt.Errorf("%s in %s fails, and does not say %q:\n%s", by.Test, by.Package, by.Complaint, said)
	}
	return times, nil
}

func TestAVerdictIsWhetherTheTestHasComplainedAsExpected(t *testing.T) {
	by := Catcher{Package: "recipes", Test: "TestX", Complaint: `token \d+ after`}
	failed := exec.CommandContext(t.Context(), "go", "no-such-command").Run()
	for _, c := range []struct {
		said string
		err  error
		want string
	}{
		{"--- FAIL: TestX\n token 1 after 1\n token 2 after 3", failed, "2"},
		{"ok", nil, "survives"},
		{"token 1 after 1", nil, "survives"},
		{"FAIL recipes [build failed]\n token 1 after 1", failed, "does not compile"},
		{"--- FAIL: TestX\n something else", failed, "does not say"},
		{"token 1 after 1", errors.New("no go here"), "no go here"},
	} {
		times, err := verdict(c.said, c.err, by)
		if got := fmt.Sprint(times, err); !strings.Contains(got, c.want) {
			t.Errorf("%q and %v: %s, want %s", c.said, c.err, got, c.want)
		}
	}
}

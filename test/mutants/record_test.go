package mutants

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// A mutant of a tree of its own, and what stands in that.
var (
	seeded   = Mutant{ID: "X1", Catchers: []Catcher{{Package: "recipes", Test: "TestX/part", Complaint: "wrong"}}}
	seededIn = map[string]string{
		"recipes/lock.go":      "one\ntwo\nthree\nnine\n",
		"recipes/lock_turn.go": "a\n",
		"recipes/lock_test.go": "package recipes\n\nfunc TestX(t *testing.T) {}\n",
		"recipes/else_test.go": "package recipes\n",
	}
)

func digestOf(t *testing.T, m Mutant, files map[string]string, patch, version string) string {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	digest, err := m.digestOf(tree, patch, version)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestAMutantIsRunAgainWhenAnythingOfItChanges(t *testing.T) {
	with := func(file, text string) map[string]string {
		files := maps.Clone(seededIn)
		files[file] = text
		return files
	}
	caughtBy := func(c Catcher) Mutant { return Mutant{ID: "X1", Catchers: []Catcher{c}} }
	caught := seeded.Catchers[0]
	for _, c := range []struct {
		what    string
		digest  string
		changed bool
	}{
		{"nothing", digestOf(t, seeded, maps.Clone(seededIn), patch, "go1"), false},
		{"a file that has nothing to do with it", digestOf(t, seeded, with("recipes/else_test.go", "package else"), patch, "go1"), false},
		{"a patched file", digestOf(t, seeded, with("recipes/lock_turn.go", "a\nb\n"), patch, "go1"), true},
		{"the patch", digestOf(t, seeded, seededIn, strings.Replace(patch, "+ten", "+eleven", 1), "go1"), true},
		{"its complaint", digestOf(t, caughtBy(caught.saying("right")), seededIn, patch, "go1"), true},
		{"how many schedules it plays", digestOf(t, caughtBy(caught.of(3)), seededIn, patch, "go1"), true},
		{"the test", digestOf(t, seeded, with("recipes/lock_test.go", "package recipes\n\nfunc TestX(*testing.T) {}\n"), patch, "go1"), true},
		{"the version of Go", digestOf(t, seeded, seededIn, patch, "go2"), true},
	} {
		now := record{"X1": c.digest}
		standing := record{"X1": digestOf(t, seeded, seededIn, patch, "go1")}.standing(now)
		if runs := standing["X1"] == ""; runs != c.changed {
			t.Errorf("%s changes: it runs: %t", c.what, runs)
		}
	}
}

func TestATestThatIsNowhereHasNoDigest(t *testing.T) {
	if digest, err := seeded.digestOf(fstest.MapFS{}, patch, "go1"); err == nil {
		t.Error(digest)
	}
}

func TestALineThatIsNoneOfARecordCountsForNothing(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	now := record{"X1": a, "X2": b, "X3": a}
	for name, c := range map[string]struct{ text, want string }{
		"all stand":             {"X1\t" + a + "\nX2\t" + b + "\n", "X1\t" + a + "\nX2\t" + b + "\n"},
		"there is none":         {"", ""},
		"another digest":        {"X1\t" + b + "\n", ""},
		"an unknown mutant":     {"X4\t" + a + "\nX1\t" + a + "\n", "X1\t" + a + "\n"},
		"no digest":             {"X1\t\nX2\n", ""},
		"a short digest":        {"X1\t" + a[1:] + "\n", ""},
		"more on the line":      {"X1\t" + a + "\tcaught\n", ""},
		"spaces":                {"X1 " + a + "\n X1\t" + a + "\n", ""},
		"a mutant named twice":  {"X1\t" + a + "\nX1\t" + b + "\n", ""},
		"a mutant of no digest": {"X4\t\n\t" + a + "\n", ""},
		"a conflict of a merge": {"<<<<<<< HEAD\nX1\t" + b + "\n=======\nX1\t" + a + "\n>>>>>>> other\nX3\t" + a + "\n", "X3\t" + a + "\n"},
	} {
		if got := readRecord(c.text).standing(now).text(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestARecordHasThoseThatWereCaughtOrStillStand(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	r := record{"X1": a, "X2": a}
	r.note(record{"X1": a, "X2": a, "X3": b, "X4": b}, map[string]bool{"X2": false, "X3": true, "X4": false})
	if got, want := r.text(), "X1\t"+a+"\nX3\t"+b+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

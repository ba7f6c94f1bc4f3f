package mutants

import (
	"strings"
	"testing"
)

const patch = `--- a/recipes/lock.go
+++ b/recipes/lock.go
@@ -3,4 +3,3 @@
 one
-two
 three
@@ -9,1 +8,2 @@
 nine
+ten
--- a/recipes/lock_turn.go
+++ b/recipes/lock_turn.go
@@ -1,1 +1,1 @@
-a
+b
`

func TestAPatchIsAppliedWhereverItsLinesStand(t *testing.T) {
	changes, err := parse(patch)
	if err != nil || len(changes) != 2 || changes[0].path != "recipes/lock.go" || changes[1].path != "recipes/lock_turn.go" {
		t.Fatalf("%+v, %v", changes, err)
	}
	got, err := changes[0].apply("new\nnine\nnew\none\ntwo\nthree\nlast\n")
	if want := "new\nnine\nten\nnew\none\nthree\nlast\n"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAPatchThatDoesNotFitIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ patch, text, want string }{
		"a line has changed":       {patch, "one\n2\nthree\nnine\n", "hunk 1 is found 0 times"},
		"the second hunk is gone":  {patch, "one\ntwo\nthree\n", "hunk 2 is found 0 times"},
		"the lines stand twice":    {patch, "one\ntwo\nthree\none\ntwo\nthree\nnine\n", "hunk 1 is found 2 times"},
		"it changes nothing":       {"+++ b/x.go\n@@ @@\n one\n", "one\n", "hunk 1 is found 1 times"},
		"it names no file":         {"@@ @@\n-one\n", "one\n", "begins with"},
		"it has no hunk":           {"+++ b/x.go\n-one\n", "one\n", "before all hunks"},
		"it has a line of nothing": {"+++ b/x.go\n@@ @@\none\n", "one\n", "is no line of a hunk"},
	} {
		changes, err := parse(c.patch)
		if err == nil {
			_, err = changes[0].apply(c.text)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

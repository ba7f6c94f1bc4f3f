package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var settings = recipes.Config{Root: "/config"}

// A desk is where one writes and reads the configuration: what one sidecar does.
type desk struct {
	world

	store *standin.Reader
}

func (w world) desk() desk { return desk{w, w.NewReader()} }

// do carries out statements, each such as `put a/b=1 if v2`, `delete a if exists`, `get a` or, in one commit, `put a=1 & check b
// if missing`, and returns what came of them, in one string.
func (d desk) do(statements string) string {
	d.Helper()
	var outcomes []string
	for statement := range strings.SplitSeq(statements, "; ") {
		outcomes = append(outcomes, d.one(d.living, statement))
	}
	return strings.Join(outcomes, ", ")
}

func (d desk) one(ctx context.Context, statement string) string {
	if key, found := strings.CutPrefix(statement, "get "); found {
		entry, err := settings.Get(ctx, d.store, key)
		return outcomeOf([]recipes.Entry{entry}, err)
	}
	if key, found := strings.CutPrefix(statement, "clear "); found {
		deleted, err := settings.DeleteAll(ctx, d.store, key)
		if err != nil {
			return err.Error()
		}
		return strconv.Itoa(deleted)
	}
	var operations []recipes.Operation
	for part := range strings.SplitSeq(statement, " & ") {
		operations = append(operations, operationOf(part))
	}
	entries, err := settings.Commit(ctx, d.store, operations...)
	return outcomeOf(entries, err)
}

func operationOf(text string) recipes.Operation {
	text, condition, _ := strings.Cut(text, " if ")
	verb, rest, _ := strings.Cut(text, " ")
	key, value, _ := strings.Cut(rest, "=")
	operation := recipes.Operation{Key: key, Value: []byte(value)}
	operation.Action = map[string]recipes.Action{
		"put": recipes.ActionPut, "delete": recipes.ActionDelete, "check": recipes.ActionCheck,
	}[verb]
	switch condition {
	case "":
	case "missing":
		operation.Require.Demand = recipes.DemandMissing
	case "exists":
		operation.Require.Demand = recipes.DemandExists
	default:
		version, _ := strconv.Atoi(condition[1:])
		operation.Require = recipes.Precondition{Demand: recipes.DemandVersion, Version: int32(version)}
	}
	return operation
}

func outcomeOf(entries []recipes.Entry, err error) string {
	if failure, failed := errors.AsType[*recipes.Failure](err); failed {
		word := map[error]string{
			recipes.ErrNoKey: "no key", recipes.ErrPrecondition: "refused", recipes.ErrKeyHasChildren: "crowded",
		}[failure.Err]
		if failure.Exists {
			word += fmt.Sprint(" v", failure.Version)
		}
		return fmt.Sprint(word, " #", failure.Operation)
	}
	if errors.Is(err, recipes.ErrNoKey) {
		return "no key"
	}
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, entry := range entries {
		if entry.Key != "" {
			words = append(words, strings.TrimPrefix(fmt.Sprintf("%s@v%d", entry.Value, entry.Version), "@"))
		}
	}
	return strings.Join(append(words, "ok")[:max(1, len(words))], " ")
}

func TestTheConfigurationDoesWhatItIsAsked(t *testing.T) {
	for _, c := range []struct{ name, statements, want string }{
		{"a key has the value it was given", "put a=1; get a; put a=2; get a", "v1, 1@v1, v2, 2@v2"},
		{"an empty value is one", "put a=; get a", "v1, v1"},
		{"a key that was never put is none", "get a; get a/b", "no key, no key"},
		{"what keys lie in is no key", "put a/b/c=1; get a; get a/b; get a/b/c", "v1, no key, no key, 1@v1"},
		{"what keys lie in can be made a key", "put a/b=1; put a=2; get a; get a/b", "v1, v1, 2@v1, 1@v1"},
		{"keys may lie below keys", "put a=1; put a/b=2; get a; get a/b", "v1, v1, 1@v1, 2@v1"},
		{"a deleted key is gone", "put a=1; delete a; get a; delete a", "v1, ok, no key, no key #0"},
		{"a key that is made anew begins anew", "put a=1; put a=2; delete a; put a=3", "v1, v2, ok, v1"},
		{"what keys lie below is not deleted", "put a=1; put a/b=2; delete a; delete a/b; delete a", "v1, v1, crowded v1 #0, ok, ok"},
		{
			"what keys lie below is not deleted either if it was made a key later",
			"put a/b=1; put a=2; delete a; delete a/b; delete a; get a", "v1, v1, crowded v1 #0, ok, ok, no key",
		},
		{"empty containers keep nothing from being deleted", "put a=1; put a/b/c=2; delete a/b/c; delete a; get a", "v1, v1, ok, ok, no key"},
		{
			"a put demands a version", "put a=1 if v1; put a=1; put a=2 if v0; put a=2 if v1; put a=3 if v1",
			"refused #0, v1, refused v1 #0, v2, refused v2 #0",
		},
		{
			"a put demands that nothing is there", "put a=1 if missing; put a=2 if missing; delete a; put a=3 if missing",
			"v1, refused v1 #0, ok, v1",
		},
		{"a put demands that a key is there", "put a=1 if exists; put a=1; put a=2 if exists", "refused #0, v1, v2"},
		{"a delete demands a version", "put a=1; delete a if v2; delete a if v1; delete a if v1", "v1, refused v1 #0, ok, no key #0"},
		{
			"a container meets what a missing key meets", "put a/b=1; put a=1 if exists; put a=1 if v0; put a=1 if missing; get a",
			"v1, refused #0, refused #0, v1, 1@v1",
		},
		{
			"a container that is a key meets what a key meets", "put a/b=1; put a=1; put a=2 if missing; put a=2 if v1; put a=3 if exists",
			"v1, v1, refused v1 #0, v2, v3",
		},
		{"a commit writes all", "put a=1 & put b=2; get a; get b", "v1 v1, 1@v1, 2@v1"},
		{"a commit writes nothing if one part cannot be done", "put a=1 & put b=2 if exists & delete c; get a", "no key #2, no key"},
		{
			"a commit says which part fails", "put b=1; put a=1 & put b=2 if missing; put a=1 & check b if v2; get a",
			"v1, refused v1 #1, refused v1 #1, no key",
		},
		{
			"a commit sees that nothing is there", "put a=1 & check b if missing; put b=1; put a=2 & check b if missing; get b",
			"v1, v1, refused v1 #1, 1@v1",
		},
		{"to see that nothing is there makes nothing", "check a/b/c if missing; get a/b/c; get a", "ok, no key, no key"},
		{"a commit sees that a container is no key", "put a/b=1; check a if missing; check a if exists", "v1, ok, refused #0"},
		{"a commit deletes what lies below first", "put a=1; put a/b=2; delete a & delete a/b; get a", "v1, v1, ok, no key"},
		{
			"a commit deletes through containers", "put a=1; put a/b/c=2; put a/b/d=3; delete a/b/d & delete a & delete a/b/c; get a",
			"v1, v1, v1, ok, no key",
		},
		{
			"a commit does not delete below what others lie", "put a=1; put a/b=2; put a/c=3; delete a & delete a/b; get a/b",
			"v1, v1, v1, crowded v1 #0, 2@v1",
		},
		{"a commit makes keys below one another", "put a/b/c=1 & put a/b=2 & put a=3; get a; get a/b; get a/b/c", "v1 v1 v1, 3@v1, 2@v1, 1@v1"},
		{"a commit moves a key", "put a=1; put b=1 & delete a if v1; get a; get b", "v1, v1, no key, 1@v1"},
		{
			"a key and all below is cleared", "put a=1; put a/b/c=2; put a/b=3; put ab=4; clear a; get a/b; get ab; clear a",
			"v1, v1, v1, v1, 3, no key, 4@v1, no such key",
		},
		{"all below what is no key is cleared", "put a/b=1; put a/c/d=1; clear a; get a/b", "v1, v1, 2, no key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				if got := w.desk().do(c.statements); got != c.want {
					w.Errorf("%s\ngives %s\nnot   %s", c.statements, got, c.want)
				}
			})
		})
	}
}

// With a tree that shows everything late, the ensemble's own answers must lead to the same.
func TestTheConfigurationDoesWhatItIsAskedThroughATreeThatIsLate(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"an update of what is missing by now", "put a=1", "delete a", "put a=2: v1"},
		{"a put of what is there by now", "put b=1", "put a=1", "put a=2: v2"},
		{"a version that is new", "put a=1", "put a=2", "put a=3 if v2: v3"},
		{"a version that is old", "put a=1", "put a=2", "put a=3 if v1: refused v2 #0"},
		{"a key that is missing by now", "put a=1", "delete a", "put a=3 if exists: refused #0"},
		{"a key that is there by now", "put b=1", "put a=1", "put a=3 if missing: refused v1 #0"},
		{"a key that is a container by now", "put a=1", "delete a; put a/b=1", "put a=3 if exists: refused #0"},
		{"a container in a key's place", "put a=1", "delete a; put a/b=1", "put a=3: v1"},
		{"a key in a container's place", "put a/b=1", "delete a/b; clear a; put a=1", "put a=3 if missing: refused v1 #0"},
		{"a container that is a key by now", "put a/b=1", "put a=1", "put a=3: v2"},
		{"a container that was a key for a while", "put a/b=1", "put a=1; clear a; put a/c=1", "put a=3: v1"},
		{"a key that has got children", "put a=1", "put a/b=1", "delete a: crowded v1 #0"},
		{"a key whose children have gone", "put a=1; put a/b=1", "delete a/b", "delete a: ok"},
		{"a check of what is missing by now", "put a=1", "delete a", "check a if v1: refused #0"},
		{"a check of what is there by now", "put b=1", "put a=1", "check a if missing: refused v1 #0"},
		{"a container that has vanished", "put a/b=1", "clear a", "put a/c=1: v1"},
		{"all that was put meanwhile", "put a/b=1", "put a/c=1; put a/b/d=1", "clear a: 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				late, other := w.desk(), w.desk()
				other.do(c.before)
				late.store.Lag()
				other.do(c.after)
				statement, want, _ := strings.Cut(c.want, ": ")
				if got := late.do(statement); got != want {
					w.Errorf("%s gives %s, not %s", statement, got, want)
				}
			})
		})
	}
}

func TestAKeyStaysWhenAllThatLayBelowItIsGone(t *testing.T) {
	inBubble(t, func(w world) {
		d := w.desk()
		if got := d.do("put a/b=1; put a=2; put c/d=1; delete a/b; delete c/d"); got != "v1, v1, v1, ok, ok" {
			w.Fatal(got)
		}
		w.Reap()
		if got := d.do("get a; put a/b=3; get a/b; delete a/b; delete a"); got != "2@v1, v1, 3@v1, ok, ok" {
			w.Error(got)
		}
		if names := w.Names("/config"); len(names) != 0 {
			w.Errorf("left behind: %q", names)
		}
	})
}

func TestKeysOfOthersAreShownAndDoNoHarm(t *testing.T) {
	inBubble(t, func(w world) {
		d := w.desk()
		owner := w.session().ID()
		w.make("/config", nil, embedded.Persistent, 0)
		w.make("/config/theirs", []byte("x"), embedded.Persistent, 0)
		w.make("/config/living", []byte("y"), embedded.Ephemeral, owner)
		w.make("/config/bare", nil, embedded.Persistent, 0)
		w.make("/config/no name", []byte("z"), embedded.Persistent, 0)
		got := d.do("get theirs; get living; get bare; put theirs=1; put living=2; put bare=3 if missing; delete theirs")
		if want := "x@v0, y@v0, no key, v1, v1, v1, ok"; got != want {
			w.Errorf("%s, want %s", got, want)
		}
		if got := d.list("", "", 9); got != "bare=3 living=2" {
			w.Error(got)
		}
		if got := d.do("put living/below=1"); !strings.Contains(got, recipes.ErrNoChildren.Error()) {
			w.Error(got)
		}
	})
}

func (w world) make(path string, data []byte, mode embedded.Mode, owner int64) {
	w.Helper()
	if _, err := w.Create(path, data, mode, owner); err != nil {
		w.Fatal(err)
	}
}

// valid is for tests what the service's rules of names are.
func valid(key string) bool { return !strings.ContainsAny(key, "% ") }

// list is a page, and `…` if more may follow.
func (d desk) list(prefix, after string, most int) string {
	d.Helper()
	entries, more, err := settings.List(d.living, d.store, recipes.Page{
		Prefix: prefix, After: after, Most: most, Bytes: 1 << 20, IsKey: valid,
	})
	if err != nil {
		d.Fatal(err)
	}
	var words []string
	for _, entry := range entries {
		words = append(words, fmt.Sprintf("%s=%s", entry.Key, entry.Value))
	}
	if more {
		words = append(words, "…")
	}
	return strings.Join(words, " ")
}

func TestListShowsKeysInOrderPageByPage(t *testing.T) {
	inBubble(t, func(w world) {
		d := w.desk()
		d.do("put b/c=1; put b=2; put b-a=3; put a=4; put b/c/d=5; put b.x/y=6; put c/d/e=7; put c/d/f=8")
		for _, c := range []struct {
			prefix, after string
			most          int
			want          string
		}{
			{"", "", 100, "a=4 b=2 b/c=1 b/c/d=5 b-a=3 b.x/y=6 c/d/e=7 c/d/f=8"},
			{"", "", 3, "a=4 b=2 b/c=1 …"},
			{"", "b/c", 2, "b/c/d=5 b-a=3 …"},
			{"", "b", 1, "b/c=1 …"},
			{"", "b/c/zz", 9, "b-a=3 b.x/y=6 c/d/e=7 c/d/f=8"},
			{"b", "", 9, "b=2 b/c=1 b/c/d=5"},
			{"b", "b", 9, "b/c=1 b/c/d=5"},
			{"b.x", "", 9, "b.x/y=6"},
			{"c/d", "c/d/e", 9, "c/d/f=8"},
			{"c/d", "z", 9, ""},
			{"nothing", "", 9, ""},
			{"", "c/d/f", 9, ""},
			{"", "", 8, "a=4 b=2 b/c=1 b/c/d=5 b-a=3 b.x/y=6 c/d/e=7 c/d/f=8"},
		} {
			if got := d.list(c.prefix, c.after, c.most); got != c.want {
				w.Errorf("prefix %q after %q: %s, want %s", c.prefix, c.after, got, c.want)
			}
		}
	})
}

func TestAPageIsBoundedInBytesAndReadsLittleMoreThanItShows(t *testing.T) {
	inBubble(t, func(w world) {
		d := w.desk()
		for i := range 200 {
			d.do(fmt.Sprintf("put k%03d=%s", i, strings.Repeat("x", 1000)))
		}
		before := d.store.Count("Get")
		entries, more, err := settings.List(d.living, d.store, recipes.Page{Most: 1000, Bytes: 20000, IsKey: valid})
		if err != nil || len(entries) != 19 || !more {
			w.Fatalf("%d entries, more %t, %v", len(entries), more, err)
		}
		if read := d.store.Count("Get") - before; read > 19+4 {
			w.Errorf("%d reads for %d entries", read, len(entries))
		}
		before = d.store.Count("Get")
		d.list("", "k150", 10)
		if read := d.store.Count("Get") - before; read > 10+5 {
			w.Errorf("%d reads for 10 entries", read)
		}
	})
}

func TestKeysAreOrderedSegmentBySegment(t *testing.T) {
	sorted := []string{"a", "a/b", "a/b/c", "a/b-", "a-b", "a-b/c", "a.b", "ab", "b"}
	for i := range sorted {
		for j := range sorted {
			if got := recipes.CompareKeys(sorted[i], sorted[j]); got > 0 != (i > j) || got == 0 != (i == j) {
				t.Errorf("%s and %s: %d", sorted[i], sorted[j], got)
			}
		}
	}
	if !slices.IsSortedFunc(sorted, recipes.CompareKeys) {
		t.Error("not in order")
	}
}

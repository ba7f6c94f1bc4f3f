package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

const patience = 30 * time.Second

// testCommitCuts cuts every transaction of a kind, and looks whether it was carried out just if the server has seen it.
func testCommitCuts(t *testing.T, e *ensemble.Ensemble, c *Client) {
	const dir = "/sidekeeper/commit-cuts"
	o := newOutsider(t, e)
	if err := o.MakeDirectory(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	commit(t, o.Client, recipes.Create(dir+"/stays", []byte("0")))
	for round := range 20 {
		for _, cut := range committed {
			version := settle(t, c, dir+"/stays").Version
			before := o.sees(dir)
			trap := cutIn(e.Server(1).ClientLink(), round, link.Multi, dir, 1)
			_, err := c.Commit(t.Context(), cut.changes(dir, version)...)
			if !errors.Is(err, recipes.ErrOutcomeUnknown) || errors.Is(err, recipes.ErrUnreachable) || trap.Count() != 1 {
				t.Fatalf("%s: %v, %d cuts", cut.name, err, trap.Count())
			}
			trap.Release()
			want := before
			if round%4 != 3 {
				want = cut.want
			}
			o.expect(dir, want)
			if want != before {
				continue
			}
			settle(t, c, dir+"/stays") // what was cut before the server came to nothing, and can be done again
			if _, err := c.Commit(t.Context(), cut.changes(dir, version)...); err != nil {
				t.Fatalf("%s, again: %v", cut.name, err)
			}
			o.expect(dir, cut.want)
		}
	}
}

var committed = []struct {
	name    string
	changes func(dir string, version int32) []recipes.Change
	want    string
}{
	{"create", func(dir string, _ int32) []recipes.Change {
		return []recipes.Change{recipes.Create(dir+"/a", []byte("1"))}
	}, "a 1 0, stays 0 0"},
	{"set", func(dir string, version int32) []recipes.Change {
		return []recipes.Change{recipes.Set(dir+"/stays", []byte("1"), version)}
	}, "a 1 0, stays 1 0"},
	{"delete", func(dir string, _ int32) []recipes.Change {
		return []recipes.Change{recipes.Delete(dir+"/a", 0)}
	}, "stays 1 0"},
	{"several", func(dir string, version int32) []recipes.Change {
		return []recipes.Change{
			recipes.Check(dir+"/stays", version), recipes.Create(dir+"/b", nil), recipes.Set(dir+"/stays", []byte("0"), -1),
			recipes.Delete(dir+"/b", -1),
		}
	}, "stays 0 0"},
}

// settle reads a node once the reader shows all there is, through whatever session.
func settle(t *testing.T, c *Client, path string) recipes.Node {
	t.Helper()
	for ctx := within(t, patience); ; {
		err := c.CatchUp(ctx)
		if err == nil {
			var node recipes.Node
			if node, err = c.Get(ctx, path); err == nil {
				return node
			}
		}
		if !errors.Is(err, recipes.ErrUnreachable) {
			t.Fatal(err)
		}
	}
}

func commit(t *testing.T, c *Client, changes ...recipes.Change) {
	t.Helper()
	if _, err := c.Commit(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
}

// testCommitsOutOfContact loses contact before a transaction is sent, and after.
func testCommitsOutOfContact(t *testing.T, e *ensemble.Ensemble, c *Client) {
	const dir = "/sidekeeper/out-of-contact"
	l, o := e.Server(1).ClientLink(), newOutsider(t, e)
	if err := o.MakeDirectory(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	commit(t, o.Client, recipes.Create(dir+"/a", []byte("0")))

	for way, leaves := range map[string]bool{"in vain": false, "by somebody who leaves": true} {
		err := commitUnanswered(t, c, l, dir+"/a", way, leaves)
		if !errors.Is(err, recipes.ErrOutcomeUnknown) || errors.Is(err, recipes.ErrUnreachable) {
			t.Errorf("sent %s: %v", way, err)
		}
		o.expect(dir, fmt.Sprintf("a %s 0", way))
	}

	before := o.sees(dir)
	l.Refuse()
	l.Reset()
	t.Cleanup(func() { l.Heal() })
	awaitReachable(t, c, false)
	if _, err := c.Commit(t.Context(), recipes.Set(dir+"/a", []byte("never"), -1)); !errors.Is(err, recipes.ErrUnreachable) {
		t.Errorf("not sent: %v", err)
	}
	if err := c.MakeDirectory(t.Context(), dir+"/b"); !errors.Is(err, recipes.ErrUnreachable) {
		t.Errorf("a directory: %v", err)
	}
	l.Heal()
	awaitReachable(t, c, true)
	o.expect(dir, before)
	commit(t, c, recipes.Delete(dir+"/a", -1))
}

// commitUnanswered sets a node's data and gets no answer, for which it does not wait if it is to leave.
func commitUnanswered(t *testing.T, c *Client, l *link.Link, path, data string, leaves bool) error {
	t.Helper()
	version := settle(t, c, path).Version
	held := l.HoldReply(func(f link.Frame) bool { return f.Opcode == link.Multi && f.Path() == path }, 1)
	defer held.Release()
	ctx, leave := context.WithCancelCause(t.Context())
	defer leave(nil)
	answer := make(chan error, 1)
	go func() {
		_, err := c.Commit(ctx, recipes.Set(path, []byte(data), version))
		answer <- err
	}()
	await(t, "the reply", patience, held.Sprung())
	if leaves {
		leave(recipes.ErrUnreachable) // as those do whose patience is over
	}
	return <-answer
}

func awaitReachable(t *testing.T, c *Client, want bool) {
	t.Helper()
	for ctx := within(t, patience); ; {
		reachable, changed := c.Reachable()
		if reachable == want {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("reachable: still %v", reachable)
		}
	}
}

package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// What recipes are promised of a Store and of a MemberSession holds for the session layer on a real server and for what
// stands in for it in tests: one table for both.

// A ground is where the contract is tried: a store, sessions, and a directory that nobody else uses.
type ground struct {
	*testing.T
	recipes.Store
	open func() memberSession
	dir  string
}

type memberSession interface {
	recipes.MemberSession
	ID() int64
	Close(ctx context.Context)
}

// bytesPerSession is the most a session of the grounds may own.
const bytesPerSession = 4000

func TestStoresAndMembersKeepOneContract(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		memory := standin.New(standin.Options{ReapInterval: 50 * time.Millisecond, EphemeralBytes: bytesPerSession})
		t.Cleanup(memory.Close)
		store := memory.NewReader()
		tryContract(t, store, func(t *testing.T) memberSession {
			t.Helper()
			s := store.OpenSession(10 * time.Second)
			t.Cleanup(func() { s.Close(t.Context()) })
			return s
		})
	})
	t.Run("real", func(t *testing.T) {
		e := oneServer.ensemble(t)
		c := newClient(t, e, func(c *Config) {
			c.EphemeralBytes = bytesPerSession
			c.Heartbeat = time.Second // a heartbeat's answer may come behind the longest request
		})
		tryContract(t, c, func(t *testing.T) memberSession {
			t.Helper()
			return openSession(t, c)
		})
	})
}

func tryContract(t *testing.T, store recipes.Store, open func(*testing.T) memberSession) {
	t.Helper()
	for i, clause := range slices.Concat(storeContract, memberContract) {
		t.Run(clause.title, func(t *testing.T) {
			g := ground{T: t, Store: store, dir: fmt.Sprintf("/contract/%d", i), open: func() memberSession { return open(t) }}
			g.must(g.MakeDirectory(t.Context(), "/contract"))
			g.commit(recipes.Create(g.dir, nil)) // which stays when it is empty
			clause.try(g)
		})
	}
}

type clause struct {
	title string
	try   func(ground)
}

func (g ground) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// at is a path in the ground's directory.
func (g ground) at(name string) string { return g.dir + "/" + name }

// commit carries out changes that must not be refused.
func (g ground) commit(changes ...recipes.Change) []recipes.Node {
	g.Helper()
	nodes, err := g.Commit(g.Context(), changes...)
	g.must(err)
	if len(nodes) != len(changes) {
		g.Fatalf("%d nodes of %d changes", len(nodes), len(changes))
	}
	return nodes
}

func (g ground) read(name string) recipes.Node {
	g.Helper()
	g.must(g.CatchUp(g.Context()))
	node, err := g.Get(g.Context(), g.at(name))
	g.must(err)
	return node
}

// is compares what there is: names, versions and data, in the order of names.
func (g ground) is(want string) {
	g.Helper()
	g.must(g.CatchUp(g.Context()))
	names, err := g.Children(g.Context(), g.dir)
	g.must(err)
	slices.Sort(names)
	var got []string
	for _, name := range names {
		node := g.read(name)
		got = append(got, fmt.Sprintf("%s=%s/%d", name, node.Data, node.Version))
	}
	if strings.Join(got, " ") != want {
		g.Errorf("there is %q, want %q", strings.Join(got, " "), want)
	}
}

// refused says which change was refused and why.
func refusedAs(err error) string {
	var refusal *recipes.Refusal
	if !errors.As(err, &refusal) {
		return fmt.Sprint("no refusal: ", err)
	}
	for _, known := range []error{
		recipes.ErrNoNode, recipes.ErrBadVersion, recipes.ErrExists, recipes.ErrNotEmpty, recipes.ErrNoChildren,
	} {
		if errors.Is(err, known) {
			return fmt.Sprintf("%d: %v", refusal.Index, known)
		}
	}
	return "unknown refusal: " + err.Error()
}

func (g ground) awaitGone(path string) {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), 20*time.Second)
	defer cancel()
	for {
		_, changed, err := g.Watch(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) {
			return
		}
		g.must(err)
		select {
		case <-changed.Done():
		case <-ctx.Done():
			g.Fatalf("%s is still there", path)
		}
	}
}

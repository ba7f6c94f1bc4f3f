package zookeeper

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// testWatchesMissNothing has things change between the server's answer to a read and its arrival.
func testWatchesMissNothing(t *testing.T, e *ensemble.Ensemble, c *Client) {
	const dir = "/sidekeeper/watched"
	o, s := newOutsider(t, e), openSession(t, c)
	if err := o.MakeDirectory(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	commit(t, o.Client, recipes.Create(dir+"/kept", nil)) // or the ensemble may remove the directory once it is empty again
	for name, happens := range map[string]func(path string) []recipes.Change{
		"gone":    func(path string) []recipes.Change { return []recipes.Change{recipes.Delete(path, -1)} },
		"changed": func(path string) []recipes.Change { return []recipes.Change{recipes.Set(path, []byte("new"), -1)} },
	} {
		path := dir + "/" + name
		commit(t, o.Client, recipes.Create(path, []byte("old")))
		if err := s.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		match := link.Is(link.GetData)
		held := e.Server(1).ClientLink().HoldReply(func(f link.Frame) bool { return match(f) && f.Path() == path }, 1)
		type sight struct {
			node    recipes.Node
			changed <-chan struct{}
			err     error
		}
		seen := make(chan sight, 1)
		go func() {
			node, changed, err := s.Watch(t.Context(), path)
			seen <- sight{node, changed.Done(), err}
		}()
		await(t, "the reply", patience, held.Sprung())
		commit(t, o.Client, happens(path)...)
		held.Release()
		read := <-seen
		if read.err != nil || string(read.node.Data) != "old" {
			t.Fatalf("%s: %+v, %v", name, read.node, read.err)
		}
		await(t, "word that the node has "+name, patience, read.changed)
	}
}

// testLostWatchesAreTold loses the connection that the watches are armed on, though nothing changes.
func testLostWatchesAreTold(t *testing.T, e *ensemble.Ensemble, c *Client) {
	const path = "/sidekeeper/relied-upon"
	o, s := newOutsider(t, e), openSession(t, c)
	commit(t, o.Client, recipes.Create(path, nil))
	if err := s.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, node, err := s.Watch(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, list, err := s.WatchChildren(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	e.Server(1).ClientLink().Reset()
	await(t, "word about the node", patience, node.Done())
	await(t, "word about the list", patience, list.Done())
}

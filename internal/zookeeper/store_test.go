package zookeeper

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/sidekeeper/sidekeeper/recipes"
)

var storeContract = []clause{
	{"a transaction is carried out in its order, and as one", func(g ground) {
		nodes := g.commit(
			recipes.Create(g.at("a"), []byte("first")), recipes.Create(g.at("b"), []byte("b")),
			recipes.Set(g.at("a"), []byte("second"), 0), recipes.Check(g.at("b"), 0), recipes.Delete(g.at("b"), 0),
		)
		g.is("a=second/1")
		a := g.read("a")
		if a.Czxid == 0 || a.Mzxid != a.Czxid || a.Owner != 0 || a.Bare || a.Children != 0 {
			g.Errorf("a is %+v", a)
		}
		set := nodes[2]
		if set.Version != 1 || set.Mzxid != a.Mzxid || set.Czxid != a.Czxid || set.Data != nil || !set.Created.Equal(a.Created) {
			g.Errorf("Set has made %+v of it", set)
		}
		if fmt.Sprint(nodes[0], nodes[4]) != fmt.Sprint(recipes.Node{}, recipes.Node{}) {
			g.Errorf("others have made %+v", nodes)
		}
	}},
	{"a change tells the newest transaction, and not the one that made the node", func(g ground) {
		g.commit(recipes.Create(g.at("a"), []byte("1")))
		made := g.read("a")
		set := g.commit(recipes.Set(g.at("a"), []byte("2"), -1))[0]
		if read := g.read("a"); set.Czxid != made.Czxid || set.Mzxid <= made.Mzxid || read.Mzxid != set.Mzxid {
			g.Errorf("made %+v, set %+v, read %+v", made, set, read)
		}
	}},
	{"nothing is done of a transaction that is refused, and the first refusal is told", func(g ground) {
		s := g.open()
		_, _, err := s.Create(g.Context(), g.at("m"), []byte("m"))
		g.must(err)
		g.commit(recipes.Create(g.at("a"), []byte("a")), recipes.Create(g.at("a/x"), []byte("x")), recipes.Set(g.at("a"), []byte("b"), 0))
		fine, later := recipes.Create(g.at("new"), []byte("new")), recipes.Delete(g.at("nowhere"), -1)
		for _, c := range []struct {
			change recipes.Change
			want   error
		}{
			{recipes.Create(g.at("a"), nil), recipes.ErrExists},
			{recipes.Create(g.at("b/c"), nil), recipes.ErrNoNode},
			{recipes.Create(g.at("m/c"), nil), recipes.ErrNoChildren},
			{recipes.Set(g.at("a"), nil, 0), recipes.ErrBadVersion},
			{recipes.Set(g.at("b"), nil, -1), recipes.ErrNoNode},
			{recipes.Delete(g.at("a"), 1), recipes.ErrNotEmpty},
			{recipes.Delete(g.at("a/x"), 1), recipes.ErrBadVersion},
			{recipes.Delete(g.at("b"), -1), recipes.ErrNoNode},
			{recipes.Check(g.at("a"), 2), recipes.ErrBadVersion},
			{recipes.Check(g.at("b"), -1), recipes.ErrNoNode},
		} {
			for index, changes := range [][]recipes.Change{{c.change}, {fine, c.change, later}} {
				nodes, err := g.Commit(g.Context(), changes...)
				if got, want := refusedAs(err), fmt.Sprintf("%d: %v", index, c.want); got != want || nodes != nil {
					g.Errorf("%d %s: %s and %v, want %s", c.change.Kind, c.change.Path, got, nodes, want)
				}
			}
		}
		if m := g.read("m"); m.Owner != s.ID() {
			g.Errorf("m is %+v", m)
		}
		g.commit(recipes.Delete(g.at("m"), -1))
		g.is("a=b/1")
	}},
	{"no changes are no transaction", func(g ground) {
		if nodes, err := g.Commit(g.Context()); err != nil || len(nodes) != 0 {
			g.Errorf("%v, %v", nodes, err)
		}
	}},
	{"no data are something else than empty data", func(g ground) {
		g.commit(recipes.Create(g.at("bare"), nil), recipes.Create(g.at("empty"), []byte{}), recipes.Create(g.at("full"), []byte("x")))
		g.must(g.MakeDirectory(g.Context(), g.at("directory/below")))
		for name, want := range map[string]string{
			"bare": "bare true, 0 children", "empty": "bare false, 0 children", "full": "bare false, 0 children",
			"directory": "bare true, 1 children", "directory/below": "bare true, 0 children",
		} {
			node := g.read(name)
			got := fmt.Sprintf("bare %v, %d children", node.Bare, node.Children)
			if got != want || node.Bare != (node.Data == nil) || node.Owner != 0 {
				g.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		made := g.commit(recipes.Set(g.at("full"), nil, -1), recipes.Set(g.at("bare"), []byte{}, -1))
		if full, bare := g.read("full"), g.read("bare"); !full.Bare || bare.Bare || !made[0].Bare || made[1].Bare {
			g.Errorf("full has become %+v, bare %+v, and Set says %+v", full, bare, made)
		}
	}},
	{"a request is as long as an ensemble accepts, and no longer", func(g ground) {
		fits := recipes.MostBytes - 65 - len(g.at("big"))
		for _, c := range []struct {
			changes []recipes.Change
			fits    bool
		}{
			{[]recipes.Change{recipes.Create(g.at("big"), make([]byte, fits+1))}, false},
			{[]recipes.Change{recipes.Create(g.at("a"), make([]byte, fits/2)), recipes.Create(g.at("b"), make([]byte, fits/2))}, false},
			{[]recipes.Change{recipes.Create(g.at(strings.Repeat("x", 1024)), nil)}, false},
			{[]recipes.Change{recipes.Create(g.at("big"), bytes.Repeat([]byte("z"), fits))}, true},
		} {
			_, err := g.Commit(g.Context(), c.changes...)
			if c.fits && err != nil || !c.fits && !errors.Is(err, recipes.ErrTooLarge) {
				g.Errorf("%d changes: %v", len(c.changes), err)
			}
		}
		if big := g.read("big"); len(big.Data) != fits || big.Version != 0 {
			g.Errorf("big is %d bytes long, want %d", len(big.Data), fits)
		}
		g.commit(recipes.Delete(g.at("big"), 0))
		g.is("")
	}},
	{"directories are made with what they lie in, and made again in vain", func(g ground) {
		for range 2 {
			g.must(g.MakeDirectory(g.Context(), g.at("a/b/c")))
			g.must(g.MakeDirectory(g.Context(), g.at("a")))
		}
		g.commit(recipes.Create(g.at("a/b/c/d"), []byte("x")))
		if c := g.read("a/b/c"); c.Children != 1 || c.Version != 0 {
			g.Errorf("c is %+v", c)
		}
		_, _, err := g.open().Create(g.Context(), g.at("m"), nil)
		g.must(err)
		if err := g.MakeDirectory(g.Context(), g.at("m/a")); !errors.Is(err, recipes.ErrNoChildren) {
			g.Errorf("in an ephemeral node: %v", err)
		}
	}},
	{"a directory vanishes some time after its last child, whatever it has been given", func(g ground) {
		g.must(g.MakeDirectory(g.Context(), g.at("a")))
		g.commit(recipes.Create(g.at("a/x"), nil), recipes.Set(g.at("a"), []byte("value"), -1))
		g.commit(recipes.Delete(g.at("a/x"), -1))
		g.awaitGone(g.at("a"))
	}},
}

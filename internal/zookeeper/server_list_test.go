package zookeeper

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// configOf is a list of servers, by id.
func configOf(version uint64, servers ...string) EnsembleConfig {
	config := EnsembleConfig{Version: version, Servers: map[int][]string{}}
	for id, addresses := range servers {
		config.Servers[id+1] = strings.Fields(addresses)
	}
	return config
}

// order is in what order servers are tried, a bar before those that come last.
func (l *serverList) order() string {
	first, rest, _ := l.current()
	return strings.TrimSuffix(strings.Join(first, " ")+" | "+strings.Join(rest, " "), " | ")
}

func TestTheListOfServersFollowsTheEnsemble(t *testing.T) {
	type step struct {
		config           EnsembleConfig // or
		proved           string         // or
		doubted, foreign string
		want             string
	}
	for name, c := range map[string]struct {
		given string
		steps []step
	}{
		"servers that are added, and removed": {"a b c", []step{
			{config: configOf(1, "a", "b", "c"), want: "a b c"},
			{config: configOf(2, "a", "b", "c", "d"), want: "a b c"},
			{proved: "d", want: "a b c d"},
			{config: configOf(3, "a", "c", "d"), want: "a c d"},
			{config: configOf(4, "d"), want: "d"},
			{config: configOf(5, "a", "d"), want: "a d"},
		}},
		"all replaced while nobody looked": {"a b", []step{
			{config: configOf(1, "a", "b"), want: "a b"},
			{config: configOf(9, "c", "d"), want: "a b"},
			{proved: "d", want: "d"},
			{proved: "c", want: "c d"},
		}},
		"other names for the same servers": {"alias", []step{
			{config: configOf(1, "a", "b"), want: "alias"},
			{proved: "b", want: "alias b"},
			{proved: "a", want: "a b | alias"},
			{config: configOf(2, "a", "b", "c"), want: "a alias b"},
			{proved: "c", want: "a b c | alias"},
		}},
		"one that is removed has to prove itself anew": {"a", []step{
			{config: configOf(1, "a", "b"), want: "a"},
			{proved: "b", want: "a b"},
			{config: configOf(2, "a"), want: "a"},
			{config: configOf(3, "a", "b"), want: "a"},
		}},
		"one that was not reached has to prove itself anew": {"a", []step{
			{config: configOf(1, "a", "b", "c"), want: "a"},
			{doubted: "b", want: "a"},
			{proved: "b", want: "a b"},
			{proved: "c", want: "a b c"},
			{doubted: "b", want: "a c | b"},
			{doubted: "a", want: "a c | b"},
			{config: configOf(1, "a", "b", "c"), want: "a c | b"},
			{proved: "b", want: "a b c"},
			{doubted: "b", want: "a c | b"},
			{foreign: "b", want: "a c"},
		}},
		"none was reached": {"alias", []step{
			{config: configOf(1, "a", "b"), want: "alias"},
			{proved: "a", want: "a alias"},
			{proved: "b", want: "a b | alias"},
			{doubted: "a", want: "alias b | a"},
			{doubted: "b", want: "a alias b"},
			{proved: "a", want: "a alias | b"},
			{config: configOf(2, "a"), want: "a | alias"},
			{config: configOf(3, "a", "b"), want: "a alias"},
		}},
		"none was reached, and others have their addresses": {"alias", []step{
			{config: configOf(1, "a", "b"), want: "alias"},
			{proved: "a", want: "a alias"},
			{proved: "b", want: "a b | alias"},
			{doubted: "a", want: "alias b | a"},
			{doubted: "b", want: "a alias b"},
			{foreign: "a", want: "alias b"},
			{foreign: "b", want: "alias"},
			{proved: "a", want: "a alias"},
		}},
		"two networks": {"a", []step{
			{config: configOf(1, "a a2", "b b2"), want: "a"},
			{proved: "b2", want: "a b2"},
			{proved: "a2", want: "a a2 b2"},
		}},
		"older ones": {"a b", []step{
			{config: configOf(7, "a", "b"), want: "a b"},
			{config: configOf(8, "a"), want: "a"},
			{config: configOf(7, "a", "b"), want: "a (version 7 is older than version 8, which was seen before)"},
			{config: configOf(8, "a", "b"), want: "a b"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			list := newServerList(strings.Fields(c.given), zap.NewNop())
			for i, step := range c.steps {
				var err error
				switch {
				case step.proved != "":
					list.prove(step.proved)
				case step.doubted != "":
					list.doubt(step.doubted)
				case step.foreign != "":
					list.disprove(step.foreign)
				default:
					err = list.take(step.config)
				}
				got := list.order()
				if err != nil {
					got += fmt.Sprintf(" (%v)", err)
				}
				if got != step.want {
					t.Errorf("step %d: %s, not %s", i+1, got, step.want)
				}
			}
		})
	}
}

func TestWhoHasToProveItselfIsKnown(t *testing.T) {
	list := newServerList([]string{"a"}, zap.NewNop())
	if err := list.take(configOf(1, "a a2", "b b2", "c")); err != nil {
		t.Fatal(err)
	}
	list.prove("b2")
	for all, want := range map[bool]string{true: "[a2 b c]", false: "[c]"} {
		if got := fmt.Sprint(list.unproved(all)); got != want {
			t.Errorf("all %t: %s, not %s", all, got, want)
		}
	}
}

func TestALibraryIsHandedTheServersOfNow(t *testing.T) {
	list := newServerList([]string{"a", "b"}, zap.NewNop())
	c := &Client{
		tree:    tree{reader: &reader{changed: make(chan struct{})}},
		servers: list, silentServers: newSilentServers(list), random: rand.New(systemRandom{}),
	}
	h := &hosts{session: c.newSession(0, false), generation: -1}
	round := func() string {
		seen := map[string]bool{}
		for range 4 {
			server, _ := h.Next()
			seen[server] = true
		}
		return fmt.Sprint(seen)
	}
	if got, want := round(), "map[a:true b:true]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if err := list.take(configOf(1, "b", "c")); err != nil {
		t.Fatal(err)
	}
	list.prove("c")
	if err := list.take(configOf(2, "c")); err != nil {
		t.Fatal(err)
	}
	if got, want := round(), "map[a:true c:true]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if server, _ := (&hosts{session: h.session, generation: -1}).Next(); server != "c" {
		t.Errorf("first of all %s", server)
	}
}

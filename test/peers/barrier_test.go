package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

const barrierRoot = "/sidekeeper/barriers/"

// A gate is what callers of ours do at barriers. It is told what the programs of the other libraries are told: Gate.java says what.
type gate struct {
	client *sidekeeper.Client
	entry  *sidekeeper.BarrierEntry
	asked  chan error
}

func (g *gate) tell(t *testing.T, command ...any) string {
	t.Helper()
	name := strings.TrimPrefix(fmt.Sprint(append(command, "")[1]), barrierRoot)
	switch command[0] {
	case "set":
		must(t, g.client.SetBarrier(t.Context(), name))
		return "set"
	case "remove":
		must(t, g.client.RemoveBarrier(t.Context(), name))
		return "removed"
	case "wait":
		return g.ask(func() error { return g.client.AwaitBarrier(t.Context(), name, nil) })
	case "enter":
		size, _ := command[2].(int)
		return g.ask(func() (err error) {
			g.entry, err = g.client.EnterBarrier(t.Context(), name, size, sidekeeper.BarrierOptions{})
			return err
		})
	case "leave":
		return g.ask(func() error { return g.entry.Leave(t.Context()) })
	}
	milliseconds, _ := command[1].(int64)
	return g.done(time.Duration(milliseconds) * time.Millisecond)
}

func (g *gate) ask(what func() error) string {
	asked := make(chan error, 1)
	go func() { asked <- what() }()
	g.asked = asked
	return "asked"
}

func (g *gate) done(within time.Duration) string {
	select {
	case err := <-g.asked:
		g.asked <- err // for who asks again
		if err != nil {
			return "failed: " + err.Error()
		}
		return "done"
	case <-time.After(within):
		return "waits"
	}
}

// gateOrder is in which order gates come first.
var gateOrder = []string{"ours", "curator's", "kazoo's", "another of ours"}

// gates are callers at barriers: two of ours, through two sidecars if there are as many, and one of each other library.
func (s stage) gates(t *testing.T) map[string]listener {
	t.Helper()
	return map[string]listener{
		"ours":            &gate{client: s.client(t)},
		"another of ours": &gate{client: dial(t, s.sidecars[len(s.sidecars)-1])},
		"curator's":       startProgram(t, javaCommand(t, "Gate", s.joined())),
		"kazoo's":         startProgram(t, pythonCommand(t, "gate.py", s.joined())),
	}
}

// Whoever sets a barrier and whoever removes it: all wait meanwhile, and all go on then. And callers of all libraries begin together and end
// together at a double barrier, in whichever order they come and go.
func TestBarriersAreSharedWithCuratorAndKazoo(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		gates := s.gates(t)
		for _, setter := range gateOrder[:3] {
			for _, remover := range gateOrder[:3] {
				t.Run(setter+" is removed by "+remover, func(t *testing.T) { holdBack(t, s, gates, gates[setter], gates[remover]) })
			}
		}
		for first := range gateOrder {
			come := slices.Concat(gateOrder[first:], gateOrder[:first])
			t.Run("together "+strings.Join(come, ", "), func(t *testing.T) { comeAndGo(t, gates, come) })
		}
		session := s.look(t)
		t.Run("kazoo leaves and it is opened again", func(t *testing.T) { openAgain(t, session, gates) })
		t.Run("a round has left something behind", func(t *testing.T) { comeWhereOneHasLeft(t, session, gates) })
	})
}

// Nobody is inside before as many have come as the barrier is for, and nobody has left before all are done. kazoo's callers need that all are
// inside before the first of them leaves.
func TestCallersOfAllLibrariesGoThroughRoundsOfADoubleBarrierInStep(t *testing.T) {
	for name, crowds := range map[string][]crowd{
		"with Curator's":             {alone("sidekeeper", "entry"), alone("curator", "entry")},
		"with Curator's and kazoo's": {alone("sidekeeper", "meeting"), alone("curator", "meeting"), alone("kazoo", "meeting")},
	} {
		t.Run(name, func(t *testing.T) {
			s, peers := realStage(t, 2), map[string]*peer{}
			for _, crowd := range crowds {
				peers[crowd.library] = s.contenders(t, crowd.library)
			}
			holds, folder := contendAt(t, peers, fmt.Sprint(contended(barrierRoot), "-", each*len(crowds)), *acquisitions, crowds...)
			if violations := outOfStep(holds); len(violations) > 0 {
				keep(t, folder)
				t.Errorf("%d rounds: %s", len(violations), strings.Join(violations[:min(5, len(violations))], "; "))
			}
		})
	}
}

// outOfStep says in which rounds somebody was inside before all had come, or came for the next one, having left, before all were done.
func outOfStep(holds []hold) (violations []string) {
	var rounds []struct{ came, entered, done, left int64 }
	entries := map[string]int{}
	for _, h := range holds {
		if entries[h.name] == len(rounds) {
			rounds = append(rounds, struct{ came, entered, done, left int64 }{0, unended, 0, unended})
		}
		round := &rounds[entries[h.name]]
		round.came, round.entered, round.done = max(round.came, h.asked), min(round.entered, h.begin), max(round.done, h.end)
		if entries[h.name] > 0 {
			before := &rounds[entries[h.name]-1]
			before.left = min(before.left, h.asked)
		}
		entries[h.name]++
	}
	for i, r := range rounds {
		if r.entered < r.came || r.left < r.done {
			violations = append(violations, fmt.Sprintf("round %d: all came by %d, one was inside at %d; all were done by %d, one had left at %d",
				i, r.came, r.entered, r.done, r.left))
		}
	}
	return violations
}

func TestRoundsInWhichSomebodyIsOutOfStepAreFound(t *testing.T) {
	entry := func(name string, asked, begin, end int64) hold {
		return hold{name: name, asked: asked, begin: begin, end: end}
	}
	for name, one := range map[string]struct {
		holds []hold
		want  int
	}{
		"in step":                     {[]hold{entry("a", 1, 3, 4), entry("b", 2, 3, 5), entry("a", 6, 8, 9), entry("b", 7, 8, 9)}, 0},
		"inside before all have come": {[]hold{entry("a", 1, 2, 4), entry("b", 3, 4, 5)}, 1},
		"alone":                       {[]hold{entry("a", 1, 2, 3), entry("b", 4, 5, 6)}, 1},
		"left before all are done":    {[]hold{entry("a", 1, 3, 4), entry("b", 2, 3, 7), entry("a", 6, 9, 9), entry("b", 8, 9, 9)}, 1},
		"the next round lets one in":  {[]hold{entry("a", 1, 3, 4), entry("b", 2, 3, 5), entry("a", 6, 7, 9), entry("b", 8, 9, 9)}, 1},
		"an early one in every round": {[]hold{entry("a", 1, 2, 4), entry("b", 3, 3, 4), entry("a", 5, 6, 9), entry("b", 7, 8, 9)}, 2},
	} {
		if got := outOfStep(one.holds); len(got) != one.want {
			t.Errorf("%s: %q, want %d", name, got, one.want)
		}
	}
}

func holdBack(t *testing.T, s stage, gates map[string]listener, setter, remover listener) {
	t.Helper()
	path := fmt.Sprint(barrierRoot, "gate-", contentions.Add(1))
	for _, each := range gates {
		expect(t, each, "asked", "wait", path)
	}
	allDone(t, gates)
	expect(t, setter, "set", "set", path)
	s.awaitEverywhere(t, path)
	for _, each := range gates {
		expect(t, each, "asked", "wait", path)
	}
	allWait(t, gates, gateOrder)
	expect(t, remover, "removed", "remove", path)
	allDone(t, gates)
}

// awaitEverywhere returns when each server shows a node: the libraries' callers are connected to any of them, and read what that one shows.
func (s stage) awaitEverywhere(t *testing.T, node string) {
	t.Helper()
	for _, server := range s.servers {
		session := stage{servers: []string{server}}.look(t)
		_, err := session.Sync(node)
		must(t, err)
		shown, _, err := session.Exists(node)
		must(t, err)
		if !shown {
			t.Errorf("server %s does not show %s", server, node)
		}
	}
}

// comeAndGo has all be inside a double barrier together three times, since the order of their names there is drawn by lot.
func comeAndGo(t *testing.T, gates map[string]listener, come []string) {
	t.Helper()
	path := fmt.Sprint(barrierRoot, "double-", contentions.Add(1))
	leave := slices.Clone(come)
	slices.Reverse(leave)
	for range 3 {
		oneAfterTheOther(t, gates, come, "enter", path, len(gates))
		oneAfterTheOther(t, gates, leave, "leave")
	}
}

// openAgain has a double barrier opened once more after kazoo's caller has begun to leave, as ours do that have not seen it open.
func openAgain(t *testing.T, session *zk.Conn, gates map[string]listener) {
	t.Helper()
	ours, kazoos := gates["ours"], gates["kazoo's"]
	both := map[string]listener{"ours": ours, "kazoo's": kazoos}
	for range 4 { // in half of them it is kazoo's that comes first in the order of names
		path := fmt.Sprint(barrierRoot, "double-", contentions.Add(1))
		for _, each := range both {
			expect(t, each, "asked", "enter", path, len(both))
		}
		allDone(t, both)
		expect(t, kazoos, "asked", "leave")
		awaitRemoved(t, session, path+"/ready")
		_, err := session.Create(path+"/ready", []byte{}, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		expect(t, ours, "asked", "leave")
		allDone(t, both)
	}
}

// comeWhereOneHasLeft has callers come where `ready` stands: kazoo's waits for one that is made, Curator's goes by it, and ours do not.
func comeWhereOneHasLeft(t *testing.T, session *zk.Conn, gates map[string]listener) {
	t.Helper()
	path := fmt.Sprint(barrierRoot, "double-", contentions.Add(1))
	for _, left := range []string{path, path + "/ready"} {
		_, err := session.Create(left, []byte{}, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
	}
	expect(t, gates["kazoo's"], "asked", "enter", path, len(gates)+2) // more than it ever counts, which is `ready`, too
	for i, name := range []string{"ours", "another of ours"} {
		expect(t, gates[name], "asked", "enter", path, len(gates))
		awaitPlaces(t, session, path, i+3)
	}
	allWait(t, gates, []string{"kazoo's", "ours", "another of ours"})
	expect(t, gates["curator's"], "asked", "enter", path, len(gates))
	for _, name := range []string{"curator's", "ours", "another of ours"} {
		expect(t, gates[name], "done", "done", patience.Milliseconds())
	}
	allWait(t, gates, []string{"kazoo's"})
	for _, name := range []string{"ours", "another of ours"} {
		gate, _ := gates[name].(*gate)
		must(t, gate.entry.Release(t.Context()))
	}
}

// oneAfterTheOther has all do the same, and looks that nobody is done before the last is told to.
func oneAfterTheOther(t *testing.T, gates map[string]listener, names []string, command ...any) {
	t.Helper()
	last := len(names) - 1
	for _, name := range names[:last] {
		expect(t, gates[name], "asked", command...)
	}
	allWait(t, gates, names[:last])
	expect(t, gates[names[last]], "asked", command...)
	allDone(t, gates)
}

// allWait looks for a moment at each of them. Whoever is right waits for ever.
func allWait(t *testing.T, gates map[string]listener, names []string) {
	t.Helper()
	for _, name := range names {
		if got := gates[name].tell(t, "done", int64(25)); got != "waits" {
			t.Fatalf("%s: %s before its time", name, got)
		}
	}
}

func allDone(t *testing.T, gates map[string]listener) {
	t.Helper()
	for name, each := range gates {
		if got := each.tell(t, "done", patience.Milliseconds()); got != "done" {
			t.Fatalf("%s: %s", name, got)
		}
	}
}

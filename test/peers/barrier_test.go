package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
				t.Run(setter+" is removed by "+remover, func(t *testing.T) { holdBack(t, gates, gates[setter], gates[remover]) })
			}
		}
		for first := range gateOrder {
			come := slices.Concat(gateOrder[first:], gateOrder[:first])
			t.Run("together "+strings.Join(come, ", "), func(t *testing.T) { comeAndGo(t, gates, come) })
		}
	})
}

func holdBack(t *testing.T, gates map[string]listener, setter, remover listener) {
	t.Helper()
	path := fmt.Sprint(barrierRoot, "gate-", contentions.Add(1))
	for _, each := range gates {
		expect(t, each, "asked", "wait", path)
	}
	allDone(t, gates)
	expect(t, setter, "set", "set", path)
	for _, each := range gates {
		expect(t, each, "asked", "wait", path)
	}
	allWait(t, gates, gateOrder)
	expect(t, remover, "removed", "remove", path)
	allDone(t, gates)
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

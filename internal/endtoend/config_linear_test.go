package endtoend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/errgroup"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go"
)

// A step is what a caller asked of one key.
type step struct {
	key     string
	verb    verb
	value   string // to put
	version int32  // demanded, if not 0
}

type verb int

const (
	gets verb = iota
	puts
	deletes
)

// An effect is what a caller was told.
type effect struct {
	unknown bool   // it may have been done, at any time since
	refused bool   // the key had another version, or there was none
	value   string // read
	version int32  // read or written; 0 if there is no key
}

// A register is the state of a key; without one, its version is 0.
type register struct {
	value   string
	version int32
}

// after is the state after a step, and whether the step can have had this effect.
func (r register) after(s step, e effect) (register, bool) {
	meets := s.version == 0 || s.version == r.version
	switch {
	case s.verb == gets:
		return r, e.value == r.value && e.version == r.version
	case s.verb == deletes && r.version == 0, !meets:
		return r, e.unknown || e.refused
	case s.verb == deletes:
		return register{}, e.unknown || !e.refused
	}
	written := register{s.value, r.version + 1}
	return written, e.unknown || !e.refused && e.version == written.version
}

var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, operation := range history {
			key := operation.Input.(step).key
			byKey[key] = append(byKey[key], operation)
		}
		var all [][]porcupine.Operation
		for _, operations := range byKey {
			all = append(all, operations)
		}
		return all
	},
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		next, possible := state.(register).after(input.(step), output.(effect))
		return possible, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
}

// A history is what callers did and were told.
type history struct {
	mu         sync.Mutex
	operations []porcupine.Operation
	unknown    int
}

// add notes steps that were asked for together. What was certainly not done is left out; what may have been done may still be.
func (h *history) add(caller int, asked moment, steps []step, effects []effect, err error) {
	answered := int64(now())
	unknown := err != nil
	switch {
	case errors.Is(err, sidekeeperclient.ErrEnsembleUnreachable), errors.Is(err, sidekeeperclient.ErrKeyHasChildren):
		return
	case errors.Is(err, sidekeeperclient.ErrKeyNotFound), errors.Is(err, sidekeeperclient.ErrPreconditionFailed):
		unknown = false
		if len(steps) > 1 {
			return // one of them was refused, and nothing was done
		}
		effects = []effect{{refused: steps[0].verb != gets}}
	case unknown:
		answered, effects = math.MaxInt64, make([]effect, len(steps))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range steps {
		if effects[i].unknown = unknown; unknown && s.verb == gets {
			continue // it says nothing
		} else if unknown {
			h.unknown++
		}
		h.operations = append(h.operations, porcupine.Operation{
			ClientId: caller, Input: s, Output: effects[i], Call: int64(asked), Return: answered,
		})
	}
}

// check says whether some order of the steps explains all that was told.
func (h *history) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(registers, h.operations, time.Minute)
}

// unexplained shows the history of the keys for which there is no such order.
func (h *history) unexplained() string {
	text := ""
	for _, operations := range registers.Partition(h.operations) {
		if porcupine.CheckOperationsTimeout(registers, operations, time.Minute) == porcupine.Ok {
			continue
		}
		slices.SortFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		for _, o := range operations {
			text += fmt.Sprintf("%d–%d caller %d: %s\n", o.Call, o.Return, o.ClientId, registers.DescribeOperation(o.Input, o.Output))
		}
	}
	return text
}

// A scribe is a caller that reads and writes keys at random.
type scribe struct {
	number  int
	config  *sidekeeperclient.Config
	dice    *rand.Rand
	keys    []string
	history *history
	known   map[string]int32 // versions it has seen
}

func (s *scribe) run(ctx context.Context) {
	for turn := 0; ctx.Err() == nil; turn++ {
		s.turn(strconv.Itoa(s.number) + "." + strconv.Itoa(turn))
		<-after(s.pause())
	}
}

func (s *scribe) pause() time.Duration { return time.Duration(s.dice.IntN(5)) * time.Millisecond }

func (s *scribe) turn(value string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	asked := now()
	key := s.keys[s.dice.IntN(len(s.keys))]
	switch s.dice.IntN(10) {
	case 0:
		err := s.config.Delete(ctx, key)
		s.history.add(s.number, asked, []step{{key: key, verb: deletes}}, make([]effect, 1), err)
	case 1, 2:
		entry, err := s.config.Put(ctx, key, []byte(value))
		s.history.add(s.number, asked, []step{{key: key, verb: puts, value: value}}, []effect{{version: entry.Version}}, err)
	case 3, 4:
		if version := s.known[key]; version > 0 {
			entry, err := s.config.Put(ctx, key, []byte(value), sidekeeperclient.IfVersion(version))
			s.history.add(s.number, asked, []step{{key: key, verb: puts, value: value, version: version}},
				[]effect{{version: entry.Version}}, err)
		}
	case 5:
		s.commit(ctx, asked, value)
	default:
		entry, err := s.config.GetLinearizable(ctx, key)
		s.known[key] = entry.Version
		s.history.add(s.number, asked, []step{{key: key}}, []effect{{value: string(entry.Value), version: entry.Version}}, err)
	}
}

// commit writes all keys at once.
func (s *scribe) commit(ctx context.Context, asked moment, value string) {
	var all sidekeeperclient.Commit
	var steps []step
	for _, key := range s.keys {
		all.Put(key, []byte(value))
		steps = append(steps, step{key: key, verb: puts, value: value})
	}
	entries, err := s.config.Commit(ctx, &all)
	effects := make([]effect, len(steps))
	for i, entry := range entries {
		effects[i].version = entry.Version
	}
	s.history.add(s.number, asked, steps, effects, err)
}

// Nine callers of three sidecars read and write the same keys while leaders are killed and connections cut; there is an
// order of all they did that explains all they were told.
func TestTheConfigurationIsLinearizable(t *testing.T) {
	e := ensembleOf(t, quickTick)
	var sidecars []*sidecar
	for range 3 {
		sidecars = append(sidecars, startSidecar(t, setup{servers: e.ClientAddresses(), tick: quickTick, timeout: 4 * time.Second}))
	}
	for round := range *rounds {
		t.Run(fmt.Sprint(round+1), func(t *testing.T) {
			h := &history{}
			keys := []string{fmt.Sprintf("linear/%d/a", round), fmt.Sprintf("linear/%d/b", round), fmt.Sprintf("linear/%d/b/c", round)}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var scribes errgroup.Group
			for i := range 9 {
				s := &scribe{
					number: i, config: keysOf(t, sidecars[i%3]), dice: rand.New(rand.NewPCG(rand.Uint64(), 0)),
					keys: keys, history: h, known: map[string]int32{},
				}
				scribes.Go(func() error { s.run(ctx); return nil })
			}
			await(t, "a quiet moment", patient, after(700*time.Millisecond))
			shake(t, e, round)
			repair(t, e)
			await(t, "another quiet moment", patient, after(700*time.Millisecond))
			stop()
			must(t, scribes.Wait())
			if result := h.check(); result != porcupine.Ok {
				t.Errorf("the history of %d operations is %s\n%s", len(h.operations), result, h.unexplained())
			}
			if len(h.operations) < 50 {
				t.Errorf("only %d operations", len(h.operations))
			}
			t.Logf("%d operations, %d of them with unknown outcome", len(h.operations), h.unknown)
		})
	}
}

// A follower that hears no more of its leader goes on answering: a local read shows what was, a linearizable one does not.
// The check of histories tells one from the other.
func TestALocalReadMayBeOldAndALinearizableOneIsNot(t *testing.T) {
	e := ensembleOf(t, defaultTick)
	must(t, e.AwaitAll(t.Context()))
	follower := e.Followers(t.Context())[0]
	var quorum []string
	for _, server := range e.Servers() {
		if server != follower {
			quorum = append(quorum, server.Address())
		}
	}
	behind := startSidecar(t, setup{servers: []string{follower.Address()}, tick: defaultTick, timeout: 15 * time.Second})
	others := startSidecar(t, setup{servers: quorum, tick: defaultTick, timeout: 15 * time.Second})
	reader, writer := keysOf(t, behind), keysOf(t, others)
	h := &history{}
	put := func(value string) {
		asked := now()
		entry, err := writer.Put(t.Context(), "lagging", []byte(value))
		must(t, err)
		h.add(0, asked, []step{{key: "lagging", verb: puts, value: value}}, []effect{{version: entry.Version}}, nil)
	}
	put("old")
	if got := inWords(reader.GetLinearizable(t.Context(), "lagging")); got != "old@v1" {
		t.Fatal(got)
	}
	e.Isolate(follower.ID())
	put("new")
	asked := now()
	entry, err := reader.Get(t.Context(), "lagging")
	must(t, err)
	if string(entry.Value) != "old" {
		t.Fatalf("the follower answers %s: it is not behind", entry.Value)
	}
	quick, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if latest, err := reader.GetLinearizable(quick, "lagging"); err == nil {
		t.Errorf("a linearizable read through the follower answers %s", latest.Value)
	}
	if result := h.check(); result != porcupine.Ok {
		t.Fatalf("the writes by themselves are %s", result)
	}
	h.add(1, asked, []step{{key: "lagging"}}, []effect{{value: "old", version: entry.Version}}, nil)
	if result := h.check(); result != porcupine.Illegal {
		t.Errorf("with the local read the history is %s", result)
	}
	repair(t, e)
	must(t, retry(t, func() error { entry, err = reader.GetLinearizable(t.Context(), "lagging"); return err }))
	if string(entry.Value) != "new" {
		t.Errorf("afterwards, a linearizable read answers %s", entry.Value)
	}
}

func TestTheCheckOfHistoriesRefusesWhatCannotBe(t *testing.T) {
	put := func(value string, version int32) (step, effect) {
		return step{key: "k", verb: puts, value: value}, effect{version: version}
	}
	get := func(value string, version int32) (step, effect) {
		return step{key: "k"}, effect{value: value, version: version}
	}
	type event struct {
		step        step
		effect      effect
		call, reply int64
	}
	of := func(s step, e effect, call, reply int64) event { return event{s, e, call, reply} }
	first, written := put("a", 1)
	second, overwritten := put("b", 2)
	readA, sawA := get("a", 1)
	readB, sawB := get("b", 2)
	lost := effect{unknown: true}
	for _, c := range []struct {
		name   string
		events []event
		want   porcupine.CheckResult
	}{
		{"a read of what was put", []event{of(first, written, 1, 2), of(readA, sawA, 3, 4)}, porcupine.Ok},
		{
			"an old read after a newer one",
			[]event{of(first, written, 1, 2), of(second, overwritten, 3, 6), of(readB, sawB, 4, 5), of(readA, sawA, 7, 8)},
			porcupine.Illegal,
		},
		{
			"a lost put that was done late",
			[]event{of(first, written, 1, 2), of(second, lost, 3, math.MaxInt64), of(readA, sawA, 5, 6), of(readB, sawB, 7, 8)},
			porcupine.Ok,
		},
		{
			"a lost put that was never done",
			[]event{of(first, written, 1, 2), of(second, lost, 3, math.MaxInt64), of(readA, sawA, 5, 6)},
			porcupine.Ok,
		},
		{
			"a lost put that was undone",
			[]event{of(first, written, 1, 2), of(second, lost, 3, math.MaxInt64), of(readB, sawB, 5, 6), of(readA, sawA, 7, 8)},
			porcupine.Illegal,
		},
		{"two puts that made the same version", []event{of(first, written, 1, 2), of(second, written, 3, 4)}, porcupine.Illegal},
	} {
		h := &history{}
		for i, e := range c.events {
			h.operations = append(h.operations, porcupine.Operation{ClientId: i, Input: e.step, Output: e.effect, Call: e.call, Return: e.reply})
		}
		if got := h.check(); got != c.want {
			t.Errorf("%s is %s, not %s", c.name, got, c.want)
		}
	}
}

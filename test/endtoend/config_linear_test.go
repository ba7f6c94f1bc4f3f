package endtoend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/linear"
)

// A history is what callers did and were told.
type history struct {
	mu         sync.Mutex
	operations linear.History
	unknown    int
}

// add notes steps that were asked for together. What was certainly not done is left out; what may have been done may still be.
func (h *history) add(caller int, asked moment, steps []linear.Step, effects []linear.Effect, err error) {
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
		effects = []linear.Effect{{Refused: steps[0].Verb != linear.Get}}
	case unknown:
		answered, effects = linear.Never, make([]linear.Effect, len(steps))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range steps {
		if effects[i].Unknown = unknown; unknown && s.Verb == linear.Get {
			continue // it says nothing
		} else if unknown {
			h.unknown++
		}
		h.operations = append(h.operations, linear.Operation{
			Caller: caller, Step: s, Effect: effects[i], Call: int64(asked), Return: answered,
		})
	}
}

// check says whether some order of the steps explains all that was told, and shows the keys for which there is none.
func (h *history) check() (linear.Result, []linear.History) { return h.operations.Check(time.Minute) }

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
		s.history.add(s.number, asked, []linear.Step{{Key: key, Verb: linear.Delete}}, make([]linear.Effect, 1), err)
	case 1, 2:
		entry, err := s.config.Put(ctx, key, []byte(value))
		s.history.add(s.number, asked, []linear.Step{{Key: key, Verb: linear.Put, Value: value}}, []linear.Effect{{Version: entry.Version}}, err)
	case 3, 4:
		if version := s.known[key]; version > 0 {
			entry, err := s.config.Put(ctx, key, []byte(value), sidekeeperclient.IfVersion(version))
			put := linear.Step{Key: key, Verb: linear.Put, Value: value, Demand: linear.Demand{Version: version}}
			s.history.add(s.number, asked, []linear.Step{put}, []linear.Effect{{Version: entry.Version}}, err)
		}
	case 5:
		s.commit(ctx, asked, value)
	default:
		entry, err := s.config.GetLinearizable(ctx, key)
		s.known[key] = entry.Version
		s.history.add(s.number, asked, []linear.Step{{Key: key}}, []linear.Effect{{Value: string(entry.Value), Version: entry.Version}}, err)
	}
}

// commit writes all keys at once.
func (s *scribe) commit(ctx context.Context, asked moment, value string) {
	var all sidekeeperclient.Commit
	var steps []linear.Step
	for _, key := range s.keys {
		all.Put(key, []byte(value))
		steps = append(steps, linear.Step{Key: key, Verb: linear.Put, Value: value})
	}
	entries, err := s.config.Commit(ctx, &all)
	effects := make([]linear.Effect, len(steps))
	for i, entry := range entries {
		effects[i].Version = entry.Version
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
			if result, unexplained := h.check(); result != linear.Linearizable {
				t.Errorf("the history of %d operations is %s\n%s", len(h.operations), result, unexplained)
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
		h.add(0, asked, []linear.Step{{Key: "lagging", Verb: linear.Put, Value: value}}, []linear.Effect{{Version: entry.Version}}, nil)
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
	if result, _ := h.check(); result != linear.Linearizable {
		t.Fatalf("the writes by themselves are %s", result)
	}
	h.add(1, asked, []linear.Step{{Key: "lagging"}}, []linear.Effect{{Value: "old", Version: entry.Version}}, nil)
	if result, _ := h.check(); result != linear.Illegal {
		t.Errorf("with the local read the history is %s", result)
	}
	repair(t, e)
	must(t, retry(t, func() error { entry, err = reader.GetLinearizable(t.Context(), "lagging"); return err }))
	if string(entry.Value) != "new" {
		t.Errorf("afterwards, a linearizable read answers %s", entry.Value)
	}
}

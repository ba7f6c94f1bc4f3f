package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A pane is a mirror that is kept up, and what somebody has read of its news.
type pane struct {
	*recipes.Mirror
	world

	at     *recipes.News
	known  map[string]string
	nodes  int
	failed error
}

// reflect keeps a mirror up until the test ends. What is in it is known once that is done for the first time.
func (d desk) reflect(sought recipes.Sought) *pane {
	d.Helper()
	p := &pane{world: d.world, known: map[string]string{}}
	sought.IsKey = valid
	sought.Count = func(nodes int) error { p.nodes = nodes; return nil }
	p.Mirror = settings.NewMirror(d.store, sought)
	go func() {
		defer p.Close()
		for d.living.Err() == nil {
			changes, err := p.Look(d.living)
			if p.failed = err; err != nil {
				return
			}
			_ = changes.Wait(d.living)
		}
	}()
	synctest.Wait()
	state, at := p.State()
	p.at = at
	for _, entry := range state {
		p.known[entry.Key] = string(entry.Value)
	}
	return p
}

// news are the changes since the last time, such as `a=1@v1` and `-b`.
func (p *pane) news() string {
	synctest.Wait()
	var words []string
	for next := p.at.Next(); next != nil; next = next.Next() {
		p.at = next
		if next.After == nil {
			delete(p.known, next.Key)
			words = append(words, "-"+next.Key)
			continue
		}
		p.known[next.Key] = string(next.After.Value)
		words = append(words, fmt.Sprintf("%s=%s@v%d", next.Key, next.After.Value, next.After.Version))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// shows is the state of the mirror, which must be what its news have led to.
func (p *pane) shows() string {
	p.Helper()
	p.news()
	state, _ := p.State()
	var words []string
	shown := map[string]string{}
	for _, entry := range state {
		words = append(words, fmt.Sprintf("%s=%s", entry.Key, entry.Value))
		shown[entry.Key] = string(entry.Value)
	}
	if !maps.Equal(shown, p.known) {
		p.Errorf("the mirror shows %v, its news have led to %v", shown, p.known)
	}
	return strings.Join(words, " ")
}

func TestAMirrorShowsWhatChanges(t *testing.T) {
	inBubble(t, func(w world) {
		d := w.desk()
		d.do("put a=1; put b/c=2; put b/d/e=3")
		p := d.reflect(recipes.Sought{Keys: []string{""}, Below: true})
		for _, c := range []struct{ do, news, shows string }{
			{"get a", "", "a=1 b/c=2 b/d/e=3"},
			{"put a=2", "a=2@v2", "a=2 b/c=2 b/d/e=3"},
			{"put b=1; put a/x=1", "a/x=1@v1 b=1@v1", "a=2 a/x=1 b=1 b/c=2 b/d/e=3"},
			{"delete b/d/e", "-b/d/e", "a=2 a/x=1 b=1 b/c=2"},
			{"put b/d/f/g=1; put b/d=1", "b/d/f/g=1@v1 b/d=1@v1", "a=2 a/x=1 b=1 b/c=2 b/d=1 b/d/f/g=1"},
			{"clear b", "-b -b/c -b/d -b/d/f/g", "a=2 a/x=1"},
			{"delete a/x; put a/x=2; delete a/x", "-a/x", "a=2"},
		} {
			d.do(c.do)
			if got := p.news(); got != c.news {
				w.Errorf("after %s the news are %s, want %s", c.do, got, c.news)
			}
			if got := p.shows(); got != c.shows {
				w.Errorf("after %s it shows %s, want %s", c.do, got, c.shows)
			}
		}
		d.do("clear a")
		w.Reap()
		if synctest.Wait(); p.nodes != 1 {
			w.Errorf("%d nodes are followed for no key", p.nodes)
		}
	})
}

func TestAMirrorOfOneKeyShowsNothingElse(t *testing.T) {
	inBubble(t, func(w world) {
		d := w.desk()
		d.do("put a/b=1")
		p := d.reflect(recipes.Sought{Keys: []string{"a", "c/d"}})
		for _, c := range []struct{ do, shows string }{
			{"get a", ""},
			{"put a/b/c=1", ""},
			{"put a=2", "a=2"},
			{"put c=1; put c/d/e=2", "a=2"},
			{"put c/d=3", "a=2 c/d=3"},
			{"delete a/b/c; delete a/b; delete a", "c/d=3"},
			{"put a=4; put a=5", "a=5 c/d=3"},
		} {
			d.do(c.do)
			if got := p.shows(); got != c.shows {
				w.Errorf("after %s it shows %s, want %s", c.do, got, c.shows)
			}
		}
		if p.nodes != 2 {
			w.Errorf("%d nodes are followed for two keys", p.nodes)
		}
	})
}

func TestAMirrorOfWhatIsNotThereWaitsForIt(t *testing.T) {
	inBubble(t, func(w world) {
		d := w.desk()
		p := d.reflect(recipes.Sought{Keys: []string{"a/b"}, Below: true})
		if got := p.shows(); got != "" {
			w.Error(got)
		}
		d.do("put a=1; put a/b/c=2; put a/bc=3")
		if got := p.shows(); got != "a/b/c=2" {
			w.Error(got)
		}
		d.do("clear a; put a/b=4")
		if got := p.shows(); got != "a/b=4" {
			w.Error(got)
		}
	})
}

func TestAChangeAmongThousandKeysTakesOneOrTwoReads(t *testing.T) {
	inBubble(t, func(w world) {
		d, other := w.desk(), w.desk()
		for i := range 1000 {
			other.do(fmt.Sprintf("put many/k%d=1", i))
		}
		p := d.reflect(recipes.Sought{Keys: []string{"many"}, Below: true})
		if p.nodes != 1001 {
			w.Fatalf("%d nodes", p.nodes)
		}
		requests := func() int { return reads(d.store) + d.store.Count("WatchChildren") }
		before := requests()
		other.do("put many/k7=2")
		if got := p.news(); got != "many/k7=2@v2" {
			w.Error(got)
		}
		if sent := requests() - before; sent > 2 {
			w.Errorf("%d requests", sent)
		}
		p.news()
		before = requests()
		other.do("put many/new=1")
		if got := p.news(); got != "many/new=1@v1" {
			w.Error(got)
		}
		if sent := requests() - before; sent > 4 {
			w.Errorf("%d requests for a new key", sent)
		}
	})
}

func TestALookThatFailsGoesOnWhereItWas(t *testing.T) {
	inBubble(t, func(w world) {
		d := w.desk()
		d.do("put a=1; put b=2; put c/d=3")
		broken := errors.New("broken")
		mirror := settings.NewMirror(d.store, recipes.Sought{
			Keys: []string{""}, Below: true, IsKey: valid, Count: func(int) error { return nil },
		})
		defer mirror.Close()
		d.store.Before(func(o standin.Operation) error {
			if strings.HasSuffix(o.Path, "/b") || strings.HasSuffix(o.Path, "/d") {
				return broken
			}
			return nil
		})
		for range 3 {
			if _, err := mirror.Look(w.living); !errors.Is(err, broken) {
				w.Fatal(err)
			}
		}
		d.store.Before(nil)
		if _, err := mirror.Look(w.living); err != nil {
			w.Fatal(err)
		}
		if state, _ := mirror.State(); len(state) != 3 {
			w.Errorf("%d entries", len(state))
		}
	})
}

func TestAMirrorThatMayNotFollowSoManyNodesSaysSo(t *testing.T) {
	inBubble(t, func(w world) {
		d := w.desk()
		d.do("put a=1; put b=2; put c=3")
		full := errors.New("too many")
		mirror := settings.NewMirror(d.store, recipes.Sought{
			Keys: []string{""}, Below: true, IsKey: valid,
			Count: func(nodes int) error {
				if nodes > 3 {
					return full
				}
				return nil
			},
		})
		defer mirror.Close()
		if _, err := mirror.Look(w.living); !errors.Is(err, full) {
			w.Error(err)
		}
	})
}

// In random schedules writers on several readers, some of which lag or lose contact, change keys above, below and beside one
// another; every mirror ends with what is stored.
func TestMirrorsEndWithWhatIsStored(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+*seeds/8; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inBubble(t, func(w world) {
				dice := rand.New(rand.NewPCG(seed, 1))
				desks := []desk{w.desk(), w.desk(), w.desk()}
				panes := []*pane{
					desks[0].reflect(recipes.Sought{Keys: []string{""}, Below: true}),
					desks[1].reflect(recipes.Sought{Keys: []string{"a"}, Below: true}),
					desks[2].reflect(recipes.Sought{Keys: []string{"a", "a/b", "b/a"}}),
				}
				w.scribble(dice, desks)
				for _, d := range desks {
					d.store.Before(nil)
					d.store.Resume()
					d.store.KeepUp()
				}
				time.Sleep(time.Second) // for what is under way
				all := w.desk().list("", "", 1000)
				for i, p := range panes {
					if got := p.shows(); got != chosen(all, i) || p.failed != nil {
						w.Errorf("mirror %d shows %q, want %q of %q (%v)", i, got, chosen(all, i), all, p.failed)
					}
				}
			})
		})
	}
}

// chosen is the part of a list that a pane is to show.
func chosen(list string, pane int) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(list), func(entry string) bool {
		key, _, _ := strings.Cut(entry, "=")
		switch pane {
		case 1:
			return key != "a" && !strings.HasPrefix(key, "a/")
		case 2:
			return key != "a" && key != "a/b" && key != "b/a"
		}
		return false
	}), " ")
}

// scribble has each desk write at random while its reader is disturbed.
func (w world) scribble(dice *rand.Rand, desks []desk) {
	keys := []string{"a", "b", "a/b", "b/a", "a/b/c", "a/c/d", "b/a/a"}
	var writers sync.WaitGroup
	for _, d := range desks {
		dice := rand.New(rand.NewPCG(dice.Uint64(), 0))
		d.store.Before(dawdle(dice.Uint64()))
		writers.Go(func() {
			for i := range 30 {
				switch key := keys[dice.IntN(len(keys))]; dice.IntN(12) {
				case 0:
					d.store.Lag()
				case 1:
					d.store.KeepUp()
				case 2:
					d.store.Suspend()
					time.Sleep(time.Duration(dice.IntN(5)) * time.Millisecond)
					d.store.Resume()
				case 3:
					d.one(context.Background(), "clear "+key)
				case 4, 5, 6:
					d.one(context.Background(), "delete "+key)
				case 7:
					w.Reap()
				default:
					d.one(context.Background(), fmt.Sprintf("put %s=%d", key, i))
				}
			}
		})
	}
	writers.Wait()
}

// dawdle makes each operation take up to two milliseconds.
func dawdle(seed uint64) standin.Hook {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 0))
	return func(standin.Operation) error {
		mu.Lock()
		pause := time.Duration(dice.IntN(3)) * time.Millisecond
		mu.Unlock()
		time.Sleep(pause)
		return nil
	}
}

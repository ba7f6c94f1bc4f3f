package recipes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A plant is a random schedule of callers that work for one of ours. Their sessions expire. Their readers lag, lose replies and send late. Other
// callers put, pause, run and, in every other plant, reset and remove the schedule. In the rest, the leader's clock jumps.
type plant struct {
	world
	readers []*standin.Reader
	jumps   bool

	mu     sync.Mutex
	skew   time.Duration // of the leader's clock
	counts map[*standin.Session]bool
	ticks  map[string]work // by tick and run
	newest time.Time       // tick that has begun
	begun  int
	again  int
}

// work is what is known of a tick.
type work struct {
	attempt int
	done    bool // an outcome is recorded, as a caller was told
}

func TestEachTickBeginsOnceUnlessItWasLost(t *testing.T) {
	begun, again := 0, 0
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inBubble(t, func(w world) {
				p := &plant{world: w, jumps: seed%2 == 0, counts: map[*standin.Session]bool{}, ticks: map[string]work{}}
				p.run(rand.New(rand.NewPCG(seed, 11)))
				begun, again = begun+p.begun, again+p.again
			})
		})
	}
	if begun < int(*seeds)*4 || again < int(*seeds)/4 {
		t.Errorf("%d began and %d began again in %d plants", begun, again, *seeds)
	}
	t.Logf("%d began and %d began again", begun, again)
}

func (p *plant) run(dice *rand.Rand) {
	for range 3 {
		p.readers = append(p.readers, p.NewReader())
	}
	p.puts(often)
	living, stop := context.WithTimeout(p.living, 12*time.Minute)
	defer stop()
	var all sync.WaitGroup
	for i := range 5 {
		reader, own := p.readers[dice.IntN(len(p.readers))], rand.New(rand.NewPCG(dice.Uint64(), 1))
		if i < 3 {
			all.Go(func() { p.work(living, reader, own) })
		} else {
			all.Go(func() { p.meddle(living, reader, own) })
		}
	}
	over := make(chan struct{})
	o := &office{world: p.world, readers: p.readers}
	all.Go(func() { o.disturb(rand.New(rand.NewPCG(dice.Uint64(), 2)), over) })
	<-living.Done()
	close(over)
	for _, reader := range p.readers {
		reader.KeepUp()
	}
	all.Wait()
}

var often = recipes.Rule{Line: "* * * * *", Zone: "UTC", StartWithin: 30 * time.Second}

// Commit is of the leader whose clock jumps.
type jumpy struct {
	recipes.Store
	of *plant
}

func (j jumpy) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	j.of.mu.Lock()
	by := j.of.skew
	j.of.mu.Unlock()
	return ahead{j.Store, by}.Commit(ctx, changes...)
}

// meddle changes the schedule.
func (p *plant) meddle(ctx context.Context, reader *standin.Reader, dice *rand.Rand) {
	store := jumpy{reader, p}
	for ctx.Err() == nil {
		time.Sleep(upTo(dice, 40*time.Second))
		rule := often
		rule.Line = []string{"* * * * *", "*/2 * * * *", "*/3 * * * *"}[dice.IntN(3)]
		rule.Paused, rule.CatchUp = dice.IntN(5) == 0, dice.IntN(2) == 0
		what := dice.IntN(8)
		switch {
		case what < 4:
			_, _ = report.Put(p.living, store, func(*recipes.Rule) (recipes.Rule, error) { return rule, nil })
		case what == 4:
			_ = report.Ask(p.living, store, fmt.Sprint("run", dice.IntN(6)))
		case p.jumps:
			p.mu.Lock()
			p.skew = time.Duration(dice.IntN(200)-100) * time.Second
			p.mu.Unlock()
		case what == 5:
			_, _ = report.Reset(p.living, store)
		default:
			_ = report.Remove(p.living, store)
			_, _ = report.Put(p.living, store, func(*recipes.Rule) (recipes.Rule, error) { return rule, nil })
			p.mu.Lock()
			for of := range p.ticks { // the runs of one that is gone are forgotten
				if of[:3] == "run" {
					delete(p.ticks, of)
				}
			}
			p.mu.Unlock()
		}
	}
}

func (p *plant) work(ctx context.Context, reader *standin.Reader, dice *rand.Rand) {
	for ctx.Err() == nil {
		session := reader.OpenSession(10 * time.Second)
		store, token := jumpy{reader, p}, int64(0)
		outcome := []recipes.Outcome{recipes.Failed, recipes.Succeeded}[dice.IntN(2)]
		of := ""
		_ = reportLock.Do(p.living, session, store, recipes.About{}, ctx.Done(), func(hold *recipes.Hold) error {
			fire, err := p.waits(ctx, store, hold)
			if err != nil || fire == nil {
				return err
			}
			if dice.IntN(3) == 0 {
				time.AfterFunc(upTo(dice, 5*time.Second), session.Expire)
			}
			if of = nameOf(fire); !p.enter(session, fire) {
				return nil
			}
			time.Sleep(upTo(dice, 8*time.Second))
			p.leave(session)
			if dice.IntN(4) > 0 {
				token = hold.Token
				p.finish(store, of, token, outcome)
			}
			return nil
		})
		session.Close(p.living)
		if token > 0 && dice.IntN(2) == 0 {
			p.finish(store, of, token, outcome) // again
		}
	}
}

// waits has a worker wait for a tick, as the service does.
func (p *plant) waits(ctx context.Context, store recipes.Store, hold *recipes.Hold) (*recipes.Fire, error) {
	for ctx.Err() == nil {
		due, err := report.Begin(p.living, store, recipes.Worker{Hold: hold})
		fire, pause := due.Begun, due.Pause
		if fire != nil || err != nil && wordOf(err) != "clocks" && wordOf(err) != "none" {
			return fire, err
		}
		if pause == 0 || pause > 5*time.Second {
			pause = 5 * time.Second
		}
		time.Sleep(pause)
	}
	return nil, nil
}

func nameOf(fire *recipes.Fire) string {
	if fire.Run != "" {
		return "run " + fire.Run
	}
	return fire.Tick.Format(time.RFC3339)
}

// enter notes that a caller is told of an attempt, and says whether it counts.
func (p *plant) enter(session *standin.Session, fire *recipes.Fire) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if session.ValidFor() == 0 {
		return false
	}
	p.begun++
	before := p.ticks[nameOf(fire)]
	switch {
	case before.done:
		p.Errorf("%s begins after its outcome was recorded", nameOf(fire))
	case before.attempt >= fire.Attempt:
		p.Errorf("%s begins as attempt %d, and has begun as %d", nameOf(fire), fire.Attempt, before.attempt)
	case !p.jumps && fire.Begun.Before(fire.Tick): // one clock that goes forward
		p.Errorf("%s begins at %s by the ensemble's clock", nameOf(fire), fire.Begun)
	case fire.Run == "" && fire.Attempt == 1 && !fire.Tick.After(p.newest):
		p.Errorf("%s begins after %s", nameOf(fire), p.newest)
	}
	if fire.Attempt > 1 {
		p.again++
	}
	for other := range p.counts {
		if other.ValidFor() > 0 {
			p.Error("two work at a time")
		}
	}
	p.ticks[nameOf(fire)] = work{attempt: fire.Attempt}
	if fire.Run == "" && fire.Tick.After(p.newest) {
		p.newest = fire.Tick
	}
	p.counts[session] = true
	return true
}

func (p *plant) leave(session *standin.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.counts, session)
}

func (p *plant) finish(store recipes.Store, of string, token int64, outcome recipes.Outcome) {
	_, err := report.Finish(p.living, store, token, outcome, "")
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, is := p.ticks[of]; is && err == nil {
		found.done = true
		p.ticks[of] = found
	}
}

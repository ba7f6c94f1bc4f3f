package simulation_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

var election = recipes.Lock{Path: "/locks/election"}

type electionTally struct{ terms, losses, steps, transfers, refused atomic.Int64 }

// Candidates campaign, lead and step back for others, while an operator hands leadership over and everything else fails, too: one leads at a
// time, a leader is asked to yield only when the candidate that shall lead is next, and nobody is left behind.
func TestOneCandidateLeadsAtATimeThoughLeadershipIsHandedOver(t *testing.T) {
	var total electionTally
	played := atMost(mostElections)
	for seed := *firstSeed; seed < *firstSeed+played; seed++ {
		dice := rand.New(rand.NewPCG(seed, 11))
		timeout := []time.Duration{4 * time.Second, 6 * time.Second, 15 * time.Second}[dice.IntN(3)]
		for _, broken := range witnessed(t, simulation.Options{Seed: seed, Hosts: 2}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			s := newStage(t, e, w, timeout)
			race := &race{standing: map[string]int64{}, turn: make(chan struct{}, 1)}
			s.run(dice, 2, func(c *caller) { (&runner{caller: c, race: race, total: &total}).live() })
		}) {
			t.Errorf("seed %d: %s", seed, broken)
		}
	}
	t.Logf("%d terms, %d lost, %d steps back, %d transfers, %d refused", total.terms.Load(), total.losses.Load(), total.steps.Load(),
		total.transfers.Load(), total.refused.Load())
	enough := func(happened *atomic.Int64, most int64) bool { return happened.Load() >= most }
	if n := int64(played); n >= 25 &&
		!(enough(&total.terms, 20*n) && enough(&total.transfers, 2*n) && enough(&total.steps, n) && enough(&total.losses, n/5)) {
		t.Error("too little happens")
	}
}

// A race is who stands for election.
type race struct {
	mu        sync.Mutex
	newest    int
	standing  map[string]int64 // sessions by candidate
	uncertain bool             // a mark may come late, by which a candidate steps back for one of earlier
	turn      chan struct{}    // of the operator
}

func (r *race) enter(session int64) (candidate string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest++
	candidate = fmt.Sprint("candidate-", r.newest)
	r.standing[candidate] = session
	return candidate
}

func (r *race) exit(candidate string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.standing, candidate)
}

// any is somebody who stands.
func (r *race) any(dice *rand.Rand) (candidate string, session int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name := range r.standing {
		names = append(names, name)
	}
	if len(names) == 0 {
		return "nobody", 0
	}
	slices.Sort(names)
	candidate = names[dice.IntN(len(names))]
	return candidate, r.standing[candidate]
}

// A runner campaigns again and again.
type runner struct {
	*caller
	race  *race
	total *electionTally
}

func (r *runner) live() {
	for {
		late := r.healed.Err() != nil
		led, err := r.visit(late)
		if late && led {
			return
		}
		if r.over.Err() != nil {
			r.accusef("%v: %v", errStuck, err)
			return
		}
		if !late && r.dice.IntN(2) == 0 {
			r.transfer()
		}
		time.Sleep(upTo(r.dice, 500*time.Millisecond))
	}
}

// transfer hands leadership over to somebody. Nobody stands then between the leader and that one, in what is committed.
func (r *runner) transfer() {
	select {
	case r.race.turn <- struct{}{}:
		defer func() { <-r.race.turn }()
	default:
		return
	}
	to, session := r.race.any(r.dice)
	err := election.Transfer(r.over, r.client, recipes.Handover{To: to, By: "operator", Patience: r.timeout + 2*time.Second})
	switch {
	case err == nil:
		r.total.transfers.Add(1)
		owners, yields := r.standing(to)
		if at := slices.Index(owners, session); at > 1 && yields && !r.race.uncertain {
			r.accusef("the leader is asked to yield to %s, who is %d behind it", to, at)
		}
	case errors.Is(err, recipes.ErrNoCandidate):
	case errors.Is(err, recipes.ErrForeignCandidate):
		r.total.refused.Add(1)
		r.race.uncertain = true
	default:
		r.race.uncertain = true
	}
}

// standing are the sessions of those that stand, in order, as it is committed, and whether the leader is asked to yield to that candidate: it is
// not if the candidate led by then, which may still step back for an earlier one.
func (r *runner) standing(to string) (owners []int64, yields bool) {
	type place struct {
		name string
		embedded.Stat
	}
	var places []place
	for _, name := range r.Names(election.Path) {
		if stat, there := r.Stat(election.Path + "/" + name); there {
			places = append(places, place{name, stat})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.Czxid, b.Czxid) })
	for _, of := range places {
		owners = append(owners, of.Owner)
	}
	return owners, len(places) > 0 && r.yields(places[0].name, to)
}

// yields says whether a leader is asked to yield to that candidate.
func (r *runner) yields(leader, to string) bool {
	return bytes.Contains(r.Data(election.Path+"/"+leader), fmt.Appendf(nil, `"to":%q`, to))
}

// visit campaigns, leads and leaves. A patient visitor does not go before it has led.
func (r *runner) visit(patient bool) (led bool, err error) {
	session, err := r.open()
	if err != nil {
		return false, err
	}
	defer r.close(session)
	candidate := r.race.enter(session.ID())
	defer r.race.exit(candidate)
	about := recipes.About{Owner: candidate, Value: new("value"), Timeout: r.timeout}
	ctx, cancel := context.WithCancel(r.over)
	defer cancel()
	if !patient && r.dice.IntN(3) == 0 {
		defer time.AfterFunc(upTo(r.dice, 6*time.Second), cancel).Stop()
	}
	for {
		place, err := election.Join(context.Background(), session, recipes.Exclusive, about)
		if err != nil {
			return false, err
		}
		hold, err := r.campaign(ctx, place)
		if hold != nil {
			r.lead(ctx, hold, session)
		}
		place.Leave(context.Background())
		if err != nil || hold != nil {
			return hold != nil, r.excuse(err)
		}
		r.total.steps.Add(1)
	}
}

// campaign returns neither a hold nor an error if the candidate is to step back.
func (r *runner) campaign(ctx context.Context, place *recipes.Place) (*recipes.Hold, error) {
	for {
		turn, err := place.Look(ctx)
		switch {
		case err != nil:
			return nil, err
		case turn.Revocation.To != "":
			return nil, nil
		case turn.First:
			return place.Grant(ctx)
		}
		if err := wait(ctx, turn); err != nil {
			return nil, err
		}
	}
}

// lead leads until it has had enough, is asked to yield and does, is cancelled, or has lost the election.
func (r *runner) lead(ctx context.Context, hold *recipes.Hold, session leased) {
	r.total.terms.Add(1)
	term := r.board.enter(r.stage, election, recipes.Exclusive, hold.Token, session)
	defer func() {
		if session.ValidFor() <= 0 {
			r.total.losses.Add(1)
		}
		r.board.exit(term)
	}()
	lasts, yields := upTo(r.dice, time.Second), true
	if r.dice.IntN(3) == 0 {
		lasts, yields = upTo(r.dice, 2*r.timeout), r.dice.IntN(2) == 0
	}
	enough, changed := time.After(lasts), hold.Changed
	for asked := hold.Revocation; !asked.Asked || !yields; {
		select {
		case <-enough:
			return
		case <-session.Done():
			return
		case <-ctx.Done():
			return
		case <-changed.Done():
			var err error
			if asked, changed, err = hold.Look(ctx); err != nil {
				return
			}
		}
	}
}

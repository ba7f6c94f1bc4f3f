package service_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A tally counts what the metrics are told of sets.
type tally struct {
	service.NoEvents

	mu             sync.Mutex
	members, items int
	plans          map[string]int
}

func (y *tally) PlanWritten(outcome string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.plans[outcome]++
}

func (y *tally) SharesChanged(members, items int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.members, y.items = y.members+members, y.items+items
}

func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return fmt.Sprintf("%d members, %d items, %v", y.members, y.items, y.plans)
}

// settled is long enough for a plan, and for the look after it.
const settled = 5 * time.Second

func TestMembersItemsAndPlansOfSetsAreCounted(t *testing.T) {
	t.Parallel()
	counted := &tally{plans: map[string]int{}}
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Define", s.defines(&assignmentv1.DefineRequest{Set: "shards", Count: 4}), "OK")
		a := s.shares(s.callers, &assignmentv1.JoinRequest{Set: "shards", Member: "a", Capacity: new(int32(3))})
		time.Sleep(settled)
		same(t, "with one member", counted.String(), "1 members, 3 items, map[committed:1]")
		b := s.shares(s.others, &assignmentv1.JoinRequest{Set: "shards", Member: "b", Capacity: new(int32(3))})
		time.Sleep(settled)
		same(t, "with two", counted.String(), "2 members, 4 items, map[committed:2]")
		a.cancel()
		time.Sleep(settled)
		same(t, "with the other one", counted.String(), "1 members, 3 items, map[committed:3]")
		b.cancel()
		time.Sleep(settled)
		same(t, "in the end", counted.String(), "0 members, 0 items, map[committed:3]")
	}, func(o *service.Options) { o.Events = counted })
}

// Each plan is counted by what became of it.
func TestPlansOfSetsAreCountedByWhatBecomesOfThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome string
		more    string // what is counted later, when nothing fails any more
		fail    func(s *scene)
	}{
		{"not_sent", "committed:1 not_sent:1", func(s *scene) { s.ensemble.Before(once(recipes.ErrUnreachable)) }},
		{"unknown", "unknown:1", func(s *scene) { s.ensemble.After(once(recipes.ErrOutcomeUnknown)) }},
		{"refused", "committed:1 refused:1", func(s *scene) { s.ensemble.Before(once(recipes.ErrDenied)) }},
		{"conflict", "committed:1 conflict:1", func(s *scene) {
			s.ensemble.beforeCommit(func() {
				_, err := s.ensemble.Commit(s.context(), recipes.Set("/sidekeeper/assignments/shards/plan", []byte(`{"members":{}}`), -1))
				s.must(err)
			})
		}},
	} {
		t.Run(c.outcome, func(t *testing.T) {
			t.Parallel()
			counted := &tally{plans: map[string]int{}}
			virtually(t, func(t *testing.T, s *scene) {
				same(t, "Define", s.defines(&assignmentv1.DefineRequest{Set: "shards", Count: 2}), "OK")
				a := s.shares(s.callers, &assignmentv1.JoinRequest{Set: "shards", Member: "a"})
				a.hears("joined")
				c.fail(s)
				time.Sleep(2 * time.Minute)
				same(t, "what is counted", counted.String(), "1 members, 2 items, map["+c.more+"]")
				a.cancel()
			}, func(o *service.Options) { o.Events = counted })
		})
	}
}

// once has the next write fail.
func once(why error) standin.Hook {
	failed := false
	return func(o standin.Operation) error {
		if o.Name != "Commit" || failed {
			return nil
		}
		failed = true
		return why
	}
}

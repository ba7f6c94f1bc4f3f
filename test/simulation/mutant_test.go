package simulation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// The schedules must be able to show that something is wrong: here it is, and in test/mutants.

func TestSchedulesShowRecipesThatAreWrong(t *testing.T) {
	for _, wrong := range []struct {
		name    string
		acquire acquirer
		promise string
	}{
		{"does not look again", hasty, "does not own the lock"},
		{"waits without a watch", drowsy, errStuck.Error()},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			var total tally
			for seed := uint64(1); seed <= 10; seed++ {
				if strings.Contains(strings.Join(play(t, seed, wrong.acquire, &total), "\n"), wrong.promise) {
					t.Logf("%q in schedule %d", wrong.promise, seed)
					return
				}
			}
			t.Errorf("not in one of 10 schedules: %q", wrong.promise)
		})
	}
}

// hasty takes it for its turn when whom it waited for has gone, who may only have stopped to wait.
func hasty(ctx context.Context, place *recipes.Place) (int64, error) {
	turn, err := place.Look(ctx)
	if err != nil {
		return 0, err
	}
	if !turn.First {
		if err := wait(ctx, turn); err != nil {
			return 0, err
		}
	}
	return granted(place.Grant(ctx))
}

// drowsy looks once whether it is its turn, and then not for an hour.
func drowsy(ctx context.Context, place *recipes.Place) (int64, error) {
	turn, err := place.Look(ctx)
	if err != nil {
		return 0, err
	}
	if !turn.First {
		asleep := &recipes.Signal{}
		defer time.AfterFunc(time.Hour, asleep.Give).Stop()
		turn.Changed, turn.Marked = asleep, nil
		if err := wait(ctx, turn); err != nil {
			return 0, err
		}
	}
	return granted(place.Grant(ctx))
}

package recipes

import (
	"context"
	"errors"
	"time"
)

// ErrHeld means that a lock is another caller's, and that there is no time left to wait for it.
var ErrHeld = errors.New("another caller holds the lock")

// Do holds the lock for as long as do runs. It tries to, and waits for its turn until late is closed; nil is closed. Errors: those of do,
// ErrHeld, the cause of ctx, and those of Look.
func (l Lock) Do(
	ctx context.Context, session Session, store Store, about About, late <-chan struct{}, do func(hold *Hold) error,
) error {
	place, err := l.Join(ctx, session, Exclusive, about)
	if err != nil {
		return err
	}
	defer place.Leave(ctx)
	var changes either
	defer changes.drop()
	for {
		turn, hold, pause, err := place.try(ctx, store)
		switch {
		case err != nil:
			return err
		case hold != nil:
			return do(hold)
		case late == nil:
			return ErrHeld
		}
		var over <-chan time.Time
		if pause > 0 {
			over = time.After(pause)
		}
		select {
		case <-changes.of(turn.Changed, turn.Marked).Done():
		case <-over:
		case <-late:
			return ErrHeld
		case <-session.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// try has the place granted if its turn has come. Otherwise it is worth to try again when the turn has changed, or after the pause.
func (p *Place) try(ctx context.Context, store Store) (turn Turn, hold *Hold, pause time.Duration, err error) {
	turn, err = p.Look(ctx)
	switch {
	case err != nil:
	case turn.Revocation.Break:
		err = ErrGone
	case turn.First:
		if pause, err = p.OutwaitDelay(ctx, store); err == nil && pause == 0 {
			hold, err = p.Grant(ctx)
		}
	}
	return turn, hold, pause, err
}

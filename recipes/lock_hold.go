package recipes

import (
	"context"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// A Hold is a granted place, until the place is left or lost.
type Hold struct {
	Token int64 // the fencing token: larger than that of every earlier hold which this one excludes

	Revocation Revocation // what was asked of it as it was granted
	Changed    *Signal    // given when it is worth to Look for the first time; nil if nothing was read yet: Look soon

	place *Place
}

// tellGranted tells that the place is held; nothing of none.
func (h *Hold) tellGranted() {
	if h != nil && trace.Told() {
		trace.Tell(trace.Step{Kind: trace.Granted, Place: h.place.path, Token: h.Token})
	}
}

// Look reads what is asked of the hold. The signal is given when it is worth to look again: the place's node may have
// changed or gone. ErrGone if another program deleted it; other errors are those of the session, and say nothing about
// the hold.
func (h *Hold) Look(ctx context.Context) (Revocation, *Signal, error) {
	own, changed, err := h.place.watchOwn(ctx)
	if err != nil {
		return Revocation{}, nil, err
	}
	if about, foreign := aboutIn(own.Data); !foreign {
		h.place.about.Value = about.Value // as it was proclaimed
	}
	return revocationIn(own.Data), changed, nil
}

package configsync

import (
	"context"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// A Sidecar is where configuration is followed, and who hears of it.
type Sidecar struct {
	Client         *sidekeeper.Client
	Explain        func(error) string // an error in one line
	Timeout        time.Duration      // of the first state
	Stdout, Stderr io.Writer          // of commands that are run
	Notes          io.Writer          // what people are told
}

// sayTrouble tells people about errors that are no end.
func (s *Sidecar) sayTrouble(err error) {
	show.Notes(s.Notes)("%s; trying again", s.Explain(err))
}

// What events are called.
const (
	eventEntry   = "entry"  // a part of the first state
	eventSynced  = "synced" // the first state is complete
	eventPut     = "put"
	eventDeleted = "deleted"
	eventStale   = "stale" // no contact: what was told may be out of date
	eventFresh   = "fresh" // contact is back, and what happened in the meantime has been told
)

// A event is one thing that a follower tells.
type event struct {
	name                 string
	key                  string
	entry                *sidekeeper.Entry // of an entry or a put
	coalesced, recreated bool              // of a put; see sidekeeper.ConfigChange
}

// A follower keeps a view of some keys equal to what is stored. It watches them again when the sidecar was lost, and then
// tells what has changed since, so that whoever listens sees one watch that never ends.
type follower struct {
	watch func(context.Context) iter.Seq2[sidekeeper.ConfigEvent, error]
	tell  func([]event) error // what one message has changed in the view; an error ends it all
	say   func(error)         // what was wrong, once until contact is back
	// timeout is how long the first state may take to come; 0 is for ever.
	timeout time.Duration

	view   map[string]*sidekeeper.Entry
	synced bool
	stale  bool
}

// The pauses before a watch is begun again.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
)

// run follows until ctx ends, and returns nil then; or until there is an error that time does not heal.
func (f *follower) run(ctx context.Context) error {
	began, pause := time.Now(), shortestPause
	for silent := false; ; {
		reached, err := f.attempt(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it failed since it was ended
		case lasting(err), !f.synced && f.timeout > 0 && time.Since(began) >= f.timeout:
			return err
		case reached:
			pause, silent = shortestPause, false
		}
		if !silent {
			f.say(err)
			silent = true
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)): //nolint:gosec // spreads what comes back at the same moment
			pause = min(2*pause, longestPause)
		case <-ctx.Done():
			return nil
		}
	}
}

// A told error is one of the listener's.
type toldError struct{ error }

// Unwrap gives the listener's error.
func (e toldError) Unwrap() error { return e.error }

// lasting says whether trying again leads to the same.
func lasting(err error) bool {
	switch e := err.(type) { //nolint:errorlint // nothing is wrapped on the way here
	case toldError:
		return true
	case *sidekeeper.Error:
		return slices.Contains([]codes.Code{
			codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented,
		}, e.Code)
	default:
		return false
	}
}

// attempt watches until the stream ends, and says whether the state at its beginning was complete.
func (f *follower) attempt(ctx context.Context) (reached bool, err error) {
	beginning := map[string]*sidekeeper.Entry{}
	for message, err := range f.watch(ctx) {
		if err != nil && ctx.Err() != nil {
			return reached, err
		}
		if err != nil {
			return reached, f.lose(err)
		}
		var events []event
		switch message.Kind {
		case sidekeeper.ConfigState:
			for _, change := range message.Changes {
				beginning[change.Entry.Key] = &change.Entry
			}
		case sidekeeper.ConfigSynced:
			reached, events = true, f.begin(beginning)
		default:
			events = f.apply(message)
		}
		if err := f.pass(events); err != nil {
			return reached, err
		}
	}
	return reached, nil
}

func (f *follower) pass(events []event) error {
	if len(events) == 0 {
		return nil
	}
	if err := f.tell(events); err != nil {
		return toldError{err}
	}
	return nil
}

// lose tells that contact is lost.
func (f *follower) lose(err error) error {
	if !f.synced || f.stale {
		return err
	}
	f.stale = true
	if told := f.pass([]event{{name: eventStale}}); told != nil {
		return told
	}
	return err
}

// begin takes the state at the beginning of a stream.
func (f *follower) begin(now map[string]*sidekeeper.Entry) []event {
	before := f.view
	f.view = now
	var events []event
	for _, key := range slices.SortedFunc(maps.Keys(now), compareKeys) {
		entry := now[key]
		if f.synced {
			events = append(events, difference(before[key], entry)...)
		} else {
			events = append(events, event{name: eventEntry, key: key, entry: entry})
		}
	}
	if !f.synced {
		f.synced = true
		return append(events, event{name: eventSynced})
	}
	for _, key := range slices.SortedFunc(maps.Keys(before), compareKeys) {
		if now[key] == nil {
			events = append(events, event{name: eventDeleted, key: key})
		}
	}
	f.stale = false
	return append(events, event{name: eventFresh})
}

// difference is what has become of a key while nobody looked.
func difference(before, now *sidekeeper.Entry) []event {
	put := event{name: eventPut, key: now.Key, entry: now}
	switch {
	case before == nil:
	case before.CreatedRevision != now.CreatedRevision:
		put.recreated = true
	case before.Revision == now.Revision:
		return nil
	default:
		put.coalesced = now.Version != before.Version+1
	}
	return []event{put}
}

// apply takes what has changed since.
func (f *follower) apply(message sidekeeper.ConfigEvent) []event {
	switch {
	case message.Kind == sidekeeper.ConfigStale && !f.stale:
		f.stale = true
		return []event{{name: eventStale}}
	case message.Kind == sidekeeper.ConfigFresh && f.stale:
		f.stale = false
		return []event{{name: eventFresh}}
	}
	events := make([]event, 0, len(message.Changes))
	for _, change := range message.Changes {
		key := change.Entry.Key
		if change.Deleted {
			delete(f.view, key)
			events = append(events, event{name: eventDeleted, key: key})
			continue
		}
		f.view[key] = &change.Entry
		events = append(events, event{eventPut, key, &change.Entry, change.Coalesced, change.Recreated})
	}
	return events
}

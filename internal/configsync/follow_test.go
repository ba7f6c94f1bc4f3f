package configsync

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// A stream is what one watch tells before it ends with an error.
type watchScript struct {
	events []sidekeeper.ConfigEvent
	err    error
}

var errLost = &sidekeeper.Error{Code: codes.Unavailable, Message: "gone"}

// followScripts follows watches that tell what stands there, and returns what was told and how it ended.
func followScripts(t *testing.T, patience time.Duration, scripts ...watchScript) (told, said string, err error) {
	t.Helper()
	var events, words []string
	f := &follower{
		tell: func(batch []event) error {
			for _, event := range batch {
				events = append(events, strings.Join(strings.Fields(event.words()), " "))
			}
			return nil
		},
		say:     func(err error) { words = append(words, err.Error()) },
		timeout: patience,
	}
	f.watch = func(ctx context.Context) iter.Seq2[sidekeeper.ConfigEvent, error] {
		return func(yield func(sidekeeper.ConfigEvent, error) bool) {
			script := scripts[0]
			scripts = scripts[min(1, len(scripts)-1):]
			for _, event := range script.events {
				if !yield(event, nil) {
					return
				}
			}
			yield(sidekeeper.ConfigEvent{}, script.err)
		}
	}
	err = f.run(t.Context())
	return strings.Join(events, ", "), strings.Join(words, ", "), err
}

func state(entries ...sidekeeper.Entry) sidekeeper.ConfigEvent {
	event := sidekeeper.ConfigEvent{Kind: sidekeeper.ConfigState}
	for _, entry := range entries {
		event.Changes = append(event.Changes, sidekeeper.ConfigChange{Entry: entry})
	}
	return event
}

func entryOf(key string, made, revision int64, version int32) sidekeeper.Entry {
	return sidekeeper.Entry{
		Key: key, Value: []byte("v"), Version: version, Revision: revision, CreatedRevision: made,
	}
}

var synced = sidekeeper.ConfigEvent{Kind: sidekeeper.ConfigSynced}

func TestALostWatchIsBegunAgainAndTellsWhatHasChanged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		told, said, err := followScripts(t, time.Minute,
			watchScript{[]sidekeeper.ConfigEvent{state(entryOf("half", 1, 1, 1))}, errLost}, // never complete: never told
			watchScript{[]sidekeeper.ConfigEvent{
				state(entryOf("same", 1, 1, 1), entryOf("once", 1, 2, 1), entryOf("gone", 1, 3, 1)),
				state(entryOf("twice", 1, 4, 1), entryOf("anew", 1, 5, 1)), synced,
			}, errLost},
			watchScript{nil, errLost},
			watchScript{[]sidekeeper.ConfigEvent{{Kind: sidekeeper.ConfigStale}, state(entryOf("other", 1, 1, 1))}, errLost},
			watchScript{[]sidekeeper.ConfigEvent{
				state(entryOf("same", 1, 1, 1), entryOf("once", 1, 9, 2), entryOf("twice", 1, 10, 3)),
				state(entryOf("anew", 11, 11, 1), entryOf("new", 12, 12, 1)), synced,
				{Kind: sidekeeper.ConfigStale},
				{Kind: sidekeeper.ConfigFresh},
				{Kind: sidekeeper.ConfigChanged, Changes: []sidekeeper.ConfigChange{
					{Entry: entryOf("new", 12, 13, 2), Coalesced: true}, {Entry: sidekeeper.Entry{Key: "same"}, Deleted: true},
				}},
			}, &sidekeeper.Error{Code: codes.PermissionDenied, Message: "no"}},
		)
		want := "entry anew version 1 v, entry gone version 1 v, entry once version 1 v, entry same version 1 v, " +
			"entry twice version 1 v, synced, stale, " +
			"put anew version 1 v (recreated), put new version 1 v, put once version 2 v, " +
			"put twice version 3 v (coalesced), deleted gone, fresh, stale, fresh, " +
			"put new version 2 v (coalesced), deleted same, stale"
		if told != want {
			t.Errorf("told %s\nwant %s", told, want)
		}
		if said != "Unavailable: gone, Unavailable: gone" { // once for each loss
			t.Errorf("said %s", said)
		}
		if exit.Code(err) != exit.Denied {
			t.Error(err)
		}
	})
}

func TestAFirstStateIsWaitedForOnlyAsLongAsItIsWorth(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		told, _, err := followScripts(t, 10*time.Second, watchScript{nil, errLost})
		if passed := time.Since(began); told != "" || exit.Code(err) != exit.Unreachable || passed < 10*time.Second || passed > 15*time.Second {
			t.Errorf("%q %v after %v", told, err, passed)
		}
	})
}

func TestAListenerThatFailsEndsTheWatch(t *testing.T) {
	failed := errors.New("the output is closed")
	f := &follower{
		watch: func(context.Context) iter.Seq2[sidekeeper.ConfigEvent, error] {
			return func(yield func(sidekeeper.ConfigEvent, error) bool) { yield(synced, nil) }
		},
		tell: func([]event) error { return failed },
	}
	if err := f.run(t.Context()); !errors.Is(err, failed) {
		t.Error(err)
	}
}

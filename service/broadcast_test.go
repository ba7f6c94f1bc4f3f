// It looks inside: how one reading is shared among many, and when it goes, shows in no answer.

package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// A notice is a thing to look at, and an ensemble that may be out of contact.
type notice struct {
	mu       sync.Mutex
	text     string
	err      error
	away     bool
	looks    int
	changed  chan struct{}
	contacts chan struct{}
}

func newNotice() *notice {
	return &notice{text: "a", changed: make(chan struct{}), contacts: make(chan struct{})}
}

func (n *notice) look(context.Context, string) (string, recipes.Changes, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.looks++
	return n.text, recipes.Changes{n.changed}, n.err
}

func (n *notice) Reachable() (bool, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.away, n.contacts
}

// become changes the thing, and everybody's contact to it.
func (n *notice) become(text string, err error, away bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if away != n.away {
		close(n.contacts)
		n.contacts = make(chan struct{})
	}
	n.text, n.err, n.away = text, err, away
	close(n.changed)
	n.changed = make(chan struct{})
}

// told is what the broadcast shows once all is quiet.
func told(b *broadcast[string, string]) string {
	synctest.Wait()
	s, _ := b.now()
	return fmt.Sprintf("%q seen %t stale %t: %v", s.view, s.seen, s.stale, s.err)
}

func TestABroadcastShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		changes func(n *notice)
		want    string
	}{
		{"at once", func(*notice) {}, `"a" seen true stale false: <nil>`},
		{"after a change", func(n *notice) { n.become("b", nil, false) }, `"b" seen true stale false: <nil>`},
		{"while contact is missing", func(n *notice) { n.become("b", recipes.ErrUnreachable, true) }, `"a" seen true stale true: <nil>`},
		{"when contact is back", func(n *notice) {
			n.become("b", recipes.ErrUnreachable, true)
			<-time.After(time.Minute)
			n.become("c", nil, false)
			<-time.After(countdown)
		}, `"c" seen true stale false: <nil>`},
		{"when it cannot be looked at", func(n *notice) {
			n.become("b", recipes.ErrDenied, false)
		}, `"a" seen true stale true: ` + recipes.ErrDenied.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n := newNotice()
				board := newBroadcasts(n, n.look).watch("thing")
				defer board.leave()
				synctest.Wait()
				c.changes(n)
				if got := told(board); got != c.want {
					t.Errorf("shows %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestAKeyIsLookedAtOnceHoweverManyWatchIt(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := newNotice()
		all := newBroadcasts(n, n.look)
		first := all.watch("thing")
		var others []*broadcast[string, string]
		for range 99 {
			others = append(others, all.watch("thing"))
		}
		synctest.Wait()
		first.leave()
		n.become("b", nil, false)
		synctest.Wait()
		if n.looks != 2 || len(all.open) != 1 {
			t.Errorf("%d looks at %d boards", n.looks, len(all.open))
		}
		for _, board := range others {
			board.leave()
		}
	})
}

// Who watched before has not left yet.
func TestAFailureIsNotToldToWhoWatchesLater(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := newNotice()
		n.become("", recipes.ErrNoAssignment, false)
		all := newBroadcasts(n, n.look)
		before := all.watch("thing")
		synctest.Wait()
		n.become("b", nil, false)
		later := all.watch("thing")
		if got := told(later); got != `"b" seen true stale false: <nil>` {
			t.Errorf("shows %s", got)
		}
		before.leave()
		if all.open["thing"] != later {
			t.Error("it is not shown to others any more")
		}
		later.leave()
		if len(all.open) != 0 {
			t.Errorf("%d boards", len(all.open))
		}
	})
}

func TestAKeyThatNobodyWatchesIsNotLookedAt(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := newNotice()
		all := newBroadcasts(n, n.look)
		board := all.watch("thing")
		synctest.Wait()
		board.leave()
		n.become("b", nil, false)
		synctest.Wait()
		if n.looks != 1 || len(all.open) != 0 {
			t.Errorf("%d looks, %d boards", n.looks, len(all.open))
		}
	})
}

func TestALookThatPanicsIsAnError(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := newNotice()
		board := newBroadcasts(n, func(context.Context, string) (string, recipes.Changes, error) { panic("hostile") }).watch("thing")
		defer board.leave()
		synctest.Wait()
		if s, _ := board.now(); s.err == nil || errors.Is(s.err, recipes.ErrUnreachable) {
			t.Errorf("shows %v", s.err)
		}
	})
}

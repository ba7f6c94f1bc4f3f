package configsync

import (
	"io"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func TestNothingIsTouchedBeforeThereIsACompleteStateNorWhileItMayBeOld(t *testing.T) {
	s := &Sync{old: true, news: make(chan struct{}, 1), Sidecar: Sidecar{Notes: io.Discard, Explain: error.Error}}
	following := &follower{view: map[string]*sidekeeper.Entry{}}
	if s.current() {
		t.Error("current before anything was told")
	}
	for _, c := range []struct {
		stale, current bool
		name           string
	}{{false, true, eventSynced}, {true, false, eventStale}, {false, true, eventFresh}} {
		following.stale = c.stale
		s.see(following, []event{{name: c.name}})
		if s.current() != c.current {
			t.Errorf("after %s: current %v", c.name, s.current())
		}
	}
}

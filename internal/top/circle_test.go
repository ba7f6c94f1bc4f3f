package top

import (
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/service"
)

// lockOf is a lock, or permits, of one lease for which others wait.
func lockOf(kind, name, holder string, waiters ...string) service.LockState {
	state := service.LockState{Kind: kind, Name: name, Holders: []service.Party{{LogID: holder}}}
	for _, waiter := range waiters {
		state.Waiters = append(state.Waiters, service.Party{LogID: waiter})
	}
	return state
}

func TestTopMarksLocksThatAreWaitedForInACircle(t *testing.T) {
	chain := []service.LockState{lockOf("lock", "a", "1", "2"), lockOf("lock", "b", "2", "3", "4"), lockOf("lock", "e", "5", "1")}
	for _, c := range []struct {
		name, want string
		more       service.LockState
	}{
		{"a chain", "", lockOf("lock", "c", "4", "6")},
		{"a circle of three", "a b c", lockOf("lock", "c", "4", "1")},
		{"a circle that passes permits", "", lockOf("semaphore", "c", "4", "1")},
	} {
		for _, filter := range []string{"", "a"} {
			state := &service.State{Locks: append(chain[:3:3], c.more)}
			v := newView(state, 0)
			v.state = arrangement{filter: filter}.of(state)
			var marked []string
			for _, row := range v.locks().rows {
				if row.level == levelBad && strings.Contains(row.cells[5], "CIRCLE") {
					marked = append(marked, row.cells[0])
				}
			}
			if got := strings.Join(marked, " "); got != c.want && (filter == "" || got != strings.Split(c.want, " ")[0]) {
				t.Errorf("%s, filter %q: marked %q, not %q", c.name, filter, got, c.want)
			}
		}
	}
}

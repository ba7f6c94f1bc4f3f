package zookeeper

import "testing"

// Whoever looks in the moment in which a session has ended and the reader has not replaced it must hear of the next one.
func TestTheNextSessionIsHeardOfByWhoeverLookedWhenTheOneBeforeHadEnded(t *testing.T) {
	ended := &Session{connectionState: connectionState{changed: make(chan struct{})}, life: life{err: errReplaced}}
	r := &reader{changed: make(chan struct{}), view: newView(ended)}
	reachable, changed := r.reachable()
	if reachable {
		t.Error("reachable through a session that has ended")
	}
	r.show(newView(&Session{connectionState: connectionState{changed: make(chan struct{})}}))
	select {
	case <-changed:
	default:
		t.Error("nobody says that there is another session")
	}
	if reachable, _ := r.reachable(); !reachable {
		t.Error("not reachable through the next session")
	}
}

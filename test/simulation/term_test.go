package simulation

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// Its epoch is later than that of the leader, which a quorum has and will keep.
func TestAServerThatNobodyHasFollowedFollowsTheLeaderAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := New(Options{})
		defer e.Close()
		e.Await()
		e.change(func() {
			alone := e.servers[(e.leader().number+1)%size]
			alone.resign()
			alone.lead()
		})
		time.Sleep(time.Minute)
		if !e.complete() {
			t.Error("it has found no leader within a minute")
		}
	})
}

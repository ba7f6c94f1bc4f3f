package zookeeper

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// What stands for a heartbeat is a transaction that was committed, sent and answered on the present connection.
func TestOnlyWhatProvesASessionStandsForAHeartbeat(t *testing.T) {
	for _, c := range []struct {
		name, operation string
		err             error
		moves           bool // to another connection, while it is under way
		counts          bool
	}{
		{name: "a creation", operation: "create", counts: true},
		{name: "a creation of what is there", operation: "create", err: zk.ErrNodeExists, counts: true},
		{name: "a deletion", operation: "delete", counts: true},
		{name: "a deletion of what is gone", operation: "delete", err: zk.ErrNoNode, counts: true},
		{name: "a deletion of a parent", operation: "delete", err: zk.ErrNotEmpty, counts: true},
		{name: "a change", operation: "setData", counts: true},
		{name: "a change of another version", operation: "setData", err: zk.ErrBadVersion, counts: true},
		{name: "a change that is denied, perhaps by the server alone", operation: "setData", err: zk.ErrNoAuth},
		{name: "several at once", operation: "multi", counts: true},
		{name: "several at once, of which one is denied", operation: "multi", err: &recipes.Refusal{Err: recipes.ErrDenied}, counts: true},
		{name: "a read", operation: "exists"},
		{name: "a read of what is not there", operation: "exists", err: zk.ErrNoNode},
		{name: "a list", operation: "getChildren"},
		{name: "what is throttled", operation: "create", err: zk.ErrNothing},
		{name: "what came over a connection that was left", operation: "create", err: zk.ErrSessionMoved},
		{name: "what was not answered", operation: "create", err: zk.ErrConnectionClosed},
		{name: "what cannot be read", operation: "multi", err: zk.ErrAPIError},
		{name: "what the library has carried over", operation: "create", moves: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := 10 * time.Second
			config := Config{
				Clock: func() time.Duration { return clock }, Observe: func(context.Context, string, time.Duration, bool) {},
				Denied: func() {}, TickTime: 2 * time.Second, SyncLimit: 5,
			}
			s := &Session{client: &Client{config: config}, life: life{proof: config.proof(15 * time.Second)}, over: context.Background()}
			s.connected, s.generation, s.changed = true, 1, make(chan struct{})
			s.proof.opened(exchange{sent: seconds(9), answered: seconds(9.5)})
			_, _ = callOnce(t.Context(), s, c.operation, func(*zk.Conn) (struct{}, error) {
				clock += time.Second
				if c.moves {
					s.generation++
				}
				return struct{}{}, c.err
			})
			if counts := s.proof.newest == (exchange{sent: seconds(10), answered: seconds(11)}); counts != c.counts {
				t.Errorf("counts: %v; the newest that does is %+v", counts, s.proof.newest)
			}
		})
	}
}

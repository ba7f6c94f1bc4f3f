package zookeeper

import (
	"testing"
	"time"
)

// The library may have read the answer already when whoever opened the session gives up.
func TestAnAnswerToASessionThatWasGivenUpIsNotTaken(t *testing.T) {
	began := time.Now()
	config := Config{
		Servers: []string{"one:2181"}, SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
		Clock: func() time.Duration { return time.Since(began) },
	}
	if err := config.complete(); err != nil {
		t.Fatal(err)
	}
	c := &Client{
		config: config, tree: tree{reader: &reader{changed: make(chan struct{})}},
		deadlineWatch: &deadlineWatch{clock: config.Clock, sessions: make(map[*Session]struct{})},
		silentServers: newSilentServers(&serverList{}),
	}
	s := c.newSession(15*time.Second, false)
	s.err = errClosed
	s.connectAnswered(&wire{}, 1, 15*time.Second)
	if len(c.deadlineWatch.sessions) != 0 || s.guard != nil {
		t.Error("its deadline is watched for ever")
	}
}

package ensemble

import (
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// TestThreeServers does one thing after another to one ensemble, since starting one takes longer than most of them.
func TestThreeServers(t *testing.T) {
	e := start(t, quick)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Ensemble)
	}{
		{"one leads and two follow", oneLeadsAndTwoFollow},
		{"a killed leader is replaced and comes back", aKilledLeaderIsReplaced},
		{"a frozen leader is replaced and follows when it goes on", aFrozenLeaderIsReplaced},
		{"an isolated follower goes on answering until its sync limit", anIsolatedFollowerAnswers},
		{"an isolated leader is replaced by one of the others", anIsolatedLeaderIsReplaced},
		{"a follower that cannot hear its leader leaves it", aDeafFollowerLeaves},
		{"a leader that cannot hear its followers gives up", aDeafLeaderGivesUp},
		{"a server is dialled through links only", serversDialThroughLinksOnly},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, e)
			heal(t, e)
		})
	}
}

func oneLeadsAndTwoFollow(t *testing.T, e *Ensemble) {
	leader := awaitQuorum(t, e)
	if got := leader.Role(within(t)); got != Leader {
		t.Errorf("the leader is %s", got)
	}
	if got := len(e.Followers(within(t))); got != 2 {
		t.Errorf("%d followers", got)
	}
	if got := len(e.ClientAddresses()); got != 3 {
		t.Errorf("%d addresses", got)
	}
}

func aKilledLeaderIsReplaced(t *testing.T, e *Ensemble) {
	before := awaitQuorum(t, e)
	process := before.ProcessID()
	before.Kill()
	if !isGone(process) || before.ProcessID() != 0 || before.Role(within(t)) != Silent {
		t.Error("the leader still runs")
	}
	began := time.Now()
	after := awaitQuorum(t, e)
	t.Logf("server %d after server %d, in %v", after.ID(), before.ID(), time.Since(began))
	if err := before.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitRole(t, before, Follower)
}

func aFrozenLeaderIsReplaced(t *testing.T, e *Ensemble) {
	before := awaitQuorum(t, e)
	before.Freeze()
	before.Freeze()
	if got := before.Role(within(t)); got != Silent {
		t.Errorf("the frozen leader is %s", got)
	}
	if after := awaitQuorum(t, e); after == before {
		t.Error("it still leads")
	}
	before.Continue()
	awaitRole(t, before, Follower)
}

func anIsolatedFollowerAnswers(t *testing.T, e *Ensemble) {
	follower := e.Followers(within(t))[0]
	conn := attach(t, follower)
	e.Isolate(follower.ID())
	began := time.Now()
	written := result(func() error {
		_, err := conn.Create("/isolated", nil, 0, open)
		return err
	})
	read := result(func() error {
		_, _, err := conn.Get("/zookeeper")
		return err
	})
	err, took := <-read, time.Since(began)
	if err != nil && took < quick.TickTime*time.Duration(quick.SyncLimit)/2 {
		t.Errorf("a read through the isolated follower: %v after %v", err, took)
	}
	awaitRole(t, follower, Looking)
	if err := <-written; err == nil {
		t.Error("a write through the isolated follower was answered")
	}
	e.Rejoin(follower.ID())
	awaitRole(t, follower, Follower)
}

// result runs a call of a client and returns what came of it, or that nothing has for too long.
func result(call func() error) <-chan error {
	outcome := make(chan error, 2)
	go func() { outcome <- call() }()
	time.AfterFunc(limit, func() { outcome <- errors.New("no answer") })
	return outcome
}

func anIsolatedLeaderIsReplaced(t *testing.T, e *Ensemble) {
	before := awaitQuorum(t, e)
	e.Isolate(before.ID())
	awaitQuorum(t, e, others(e, before)...)
	awaitRole(t, before, Looking)
	e.Rejoin(before.ID())
	awaitRole(t, before, Follower)
}

func aDeafFollowerLeaves(t *testing.T, e *Ensemble) {
	leader, follower := awaitQuorum(t, e), e.Followers(within(t))[0]
	e.CutPeers(leader.ID(), follower.ID(), link.Stall)
	awaitRole(t, follower, Looking)
	if got := leader.Role(within(t)); got != Leader {
		t.Errorf("the leader is %s", got)
	}
	e.CutPeers(leader.ID(), follower.ID(), link.Pass)
	awaitRole(t, follower, Follower)
}

func aDeafLeaderGivesUp(t *testing.T, e *Ensemble) {
	leader := awaitQuorum(t, e)
	for _, follower := range others(e, leader) {
		e.CutPeers(follower.ID(), leader.ID(), link.Drop)
	}
	awaitRole(t, leader, Looking)
	e.Heal()
	awaitAll(t, e)
}

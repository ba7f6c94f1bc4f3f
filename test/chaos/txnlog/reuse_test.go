package txnlog

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// enough is after how many nodes the callers stop.
const enough = 250

// Whatever fails, a session that is used again owns nothing when it is: each of these callers' sessions has one place or member at a
// time, so that what the ensemble itself has logged of a session is a node, its end, the next node, and so on.
func TestASessionThatIsUsedAgainOwnsNothingOfThoseBefore(t *testing.T) {
	s := start(t)
	client, err := zookeeper.New(zookeeper.Config{
		Servers: s.ClientAddresses(), SessionTimeout: 6 * time.Second, TickTime: 200 * time.Millisecond, SyncLimit: 25,
		Heartbeat: 500 * time.Millisecond, Directories: []string{"/locks"},
	})
	must(t, err)
	over, end := context.WithTimeout(t.Context(), 4*time.Minute)
	defer end()
	var callers sync.WaitGroup
	var done atomic.Int64
	for caller := range 24 {
		dice := rand.New(rand.NewPCG(uint64(caller), 1))
		callers.Go(func() {
			for over.Err() == nil {
				if borrow(over, client, dice) && done.Add(1) >= enough {
					end()
				}
			}
		})
	}
	s.trouble(over, &done)
	callers.Wait()
	s.healed()
	client.Close()

	l, err := Read(0, s.directories()...)
	must(t, err)
	newest, uses, again := map[int64]*Life{}, 0, 0
	for _, life := range l.Lives() {
		if life.Owner == 0 {
			continue
		}
		before := newest[life.Owner]
		newest[life.Owner] = life
		if uses++; before == nil {
			continue
		}
		if again++; !before.Gone.Happened() || before.Gone.Zxid > life.Made.Zxid {
			t.Errorf("session %#x has made %s while it had %s", life.Owner, life.Path, before.Path)
		}
	}
	t.Logf("%d nodes of %d sessions, which were used again %d times", uses, len(newest), again)
	if again < uses/4 {
		t.Error("too few sessions were used again")
	}
}

// borrow has a session and one node for a moment, and says whether it had a session.
func borrow(over context.Context, client *zookeeper.Client, dice *rand.Rand) bool {
	session, err := client.OpenPooled(over, 0)
	if err != nil {
		<-time.After(50 * time.Millisecond)
		return false
	}
	ctx := context.WithoutCancel(over)
	defer session.Close(ctx)
	switch dice.IntN(4) {
	case 0:
		_, _, _ = session.Create(ctx, "/locks/group/"+string('a'+rune(dice.IntN(20))), nil)
	case 1: // and leaves while it is being made
		go func() { _, _ = session.Enqueue(ctx, "/locks/orders", "-lock-", nil) }()
		<-time.After(time.Duration(dice.IntN(2000)) * time.Microsecond)
	default:
		made, err := session.Enqueue(ctx, "/locks/orders", "-lock-", nil)
		name := made.Name
		if err == nil && dice.IntN(2) == 0 {
			session.Dequeue(ctx, "/locks/orders/"+name)
		}
	}
	return true
}

// trouble has answers be lost and servers come and go, until over ends: each time after some nodes, however fast the machine is.
func (s *stage) trouble(over context.Context, done *atomic.Int64) {
	s.Helper()
	dice := rand.New(rand.NewPCG(1, 2))
	for over.Err() == nil {
		server := s.Server(1 + dice.IntN(3))
		switch dice.IntN(6) {
		case 0:
			server.ClientLink().Reset()
		case 1:
			server.Kill()
			must(s.T, server.Restart())
		case 2, 3:
			server.ClientLink().CutReply(link.Is(link.Create2), 2)
		case 4:
			server.ClientLink().CutReply(link.Is(link.Delete), 2)
		case 5:
			server.ClientLink().CutReply(link.Is(link.Multi), 1)
		}
		for next := done.Load() + dice.Int64N(30); done.Load() < next && over.Err() == nil; {
			<-time.After(5 * time.Millisecond)
		}
	}
}

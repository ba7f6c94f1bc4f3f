package peers

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A lock that is held for as long as somebody leads is an election: Curator's LeaderSelector takes part in it.
func TestALeaderSelectorSeesOurHolderAndFollowsItAndALatchDoesNot(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		client, elector := s.client(t), startProgram(t, javaCommand(t, "Elector", s.joined()))
		ours, err := client.Acquire(t.Context(), "election", sidekeeper.LockOptions{Owner: "billing-7"})
		must(t, err)
		expect(t, elector, "leads", "latch", lockRoot+"election", patience.Milliseconds())
		expect(t, elector, "stands", "stand", lockRoot+"election", "elector-1")
		if leader := elector.tell(t, "leader"); !strings.Contains(leader, `"owner":"billing-7"`) {
			t.Errorf("the leader is %s", leader)
		}
		awaitView(t, client, "election", "holds: billing-7; waits: elector-1, foreign")
		expect(t, elector, "waits", "leads", 300)
		must(t, ours.Release(t.Context()))
		expect(t, elector, "leads", "leads", patience.Milliseconds())
		awaitView(t, client, "election", "holds: elector-1, foreign")
		expect(t, elector, "elector-1", "leader")
		next := acquireBehind(t, client, "election")
		expect(t, elector, "resigned", "resign")
		must(t, (<-next).Release(t.Context()))
	})
}

// awaitView returns when the sidecar shows a lock so.
func awaitView(t *testing.T, client *sidekeeper.Client, name, want string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for view, err := range client.Watch(t.Context(), name) {
		must(t, err)
		got := "holds: " + listed(view.Holders)
		if waiters := listed(view.Waiters); waiters != "" {
			got += "; waits: " + waiters
		}
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the sidecar shows %q, want %q", got, want)
		}
	}
}

func listed(contenders []*sidekeeper.Contender) string {
	var words []string
	for _, c := range contenders {
		word := c.Owner
		if c.Foreign {
			word += ", foreign"
		}
		if c.RevocationRequested {
			word += ", asked to let go"
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

// acquireBehind returns when a caller waits for the lock; what it gets comes through the channel.
func acquireBehind(t *testing.T, client *sidekeeper.Client, name string) <-chan *sidekeeper.Lock {
	t.Helper()
	queued, granted := make(chan struct{}), make(chan *sidekeeper.Lock, 1)
	var once sync.Once
	go func() {
		defer close(granted)
		lock, err := client.Acquire(t.Context(), name, sidekeeper.LockOptions{
			Owner: "a waiter", OnQueued: func(sidekeeper.Queued) { once.Do(func() { close(queued) }) },
		})
		if err != nil {
			t.Errorf("behind the holder of %s: %v", name, err)
			return
		}
		granted <- lock
	}()
	select {
	case <-queued:
	case <-granted:
		t.Fatalf("nobody holds %s", name)
	case <-time.After(patience):
		t.Fatalf("nobody waits for %s", name)
	}
	return granted
}

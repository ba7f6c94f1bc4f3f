package peers

import (
	"errors"
	"iter"
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

// An election of ours, callers that acquire its lock and Curator's LeaderSelector have one leader at a time, in the order in which they came.
func TestALeaderSelectorAndALockTakePartInOurElections(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		client, elector := s.client(t), startProgram(t, javaCommand(t, "Elector", s.joined()))
		observed := observe(t, client, "campaign")
		observed.sees(t, "nobody")
		ours := campaign(t, client, "campaign", "billing-7")
		observed.sees(t, "billing-7 with billing-7:80")
		expect(t, elector, "stands", "stand", lockRoot+"campaign", "elector-1")
		awaitView(t, client, "campaign", "holds: billing-7; waits: elector-1, foreign")
		if leader := elector.tell(t, "leader"); !strings.Contains(leader, `"owner":"billing-7"`) {
			t.Errorf("the leader is %s", leader)
		}
		lock := acquireBehind(t, client, "campaign")
		next := campaignBehind(t, client, "campaign", "billing-8")
		for to, want := range map[string]error{"billing-8": sidekeeper.ErrForeignCandidate, "elector-2": sidekeeper.ErrCandidateNotFound} {
			if err := client.TransferLeadership(t.Context(), "campaign", to, sidekeeper.TransferOptions{}); !errors.Is(err, want) {
				t.Errorf("transfer to %s: %v", to, err)
			}
		}
		must(t, client.TransferLeadership(t.Context(), "campaign", "elector-1", sidekeeper.TransferOptions{}))
		if asked := <-ours.YieldRequested(); asked.To != "elector-1" {
			t.Errorf("asked to yield to %q", asked.To)
		}
		observed.sees(t, "billing-7 with billing-7:80, asked to yield")
		expect(t, elector, "waits", "leads", 300)
		must(t, ours.Resign(t.Context()))
		expect(t, elector, "leads", "leads", patience.Milliseconds())
		observed.sees(t, "elector-1, foreign")
		expect(t, elector, "resigned", "resign")
		must(t, (<-lock).Release(t.Context()))
		must(t, (<-next).Resign(t.Context()))
	})
}

// With the other layout, it is Curator's LeaderLatch that takes part in our elections.
func TestALeaderLatchTakesPartInOurElections(t *testing.T) {
	s := realStage(t, 1, documentedFlags(t, "--election-layout latch")...)
	client, elector := s.client(t), startProgram(t, javaCommand(t, "Elector", s.joined()))
	ours := campaign(t, client, "latched", "billing-7")
	expect(t, elector, "entered", "enter", lockRoot+"latched", "latch-1")
	awaitView(t, client, "latched", "holds: billing-7; waits: latch-1, foreign")
	if leader := elector.tell(t, "latch-leader"); !strings.Contains(leader, `"owner":"billing-7"`) {
		t.Errorf("the leader is %s", leader)
	}
	next := campaignBehind(t, client, "latched", "billing-8")
	expect(t, elector, "waits", "latched", 300)
	must(t, ours.Resign(t.Context()))
	expect(t, elector, "leads", "latched", patience.Milliseconds())
	observe(t, client, "latched").sees(t, "latch-1, foreign")
	select {
	case <-next:
		t.Fatal("two lead")
	case <-time.After(300 * time.Millisecond):
	}
	expect(t, elector, "left", "leave")
	must(t, (<-next).Resign(t.Context()))
}

// Nobody leads beside another, whatever each takes part with.
func TestCandidatesAndCuratorsLeadOneAtATime(t *testing.T) {
	for recipe, stands := range map[string]struct {
		ours  crowd
		flags []string
	}{
		"selector": {crowd{"sidekeeper", map[string]int{"candidate": each - 1, "mutex": 1}}, nil},
		"latch":    {alone("sidekeeper", "candidate"), documentedFlags(t, "--election-layout latch")},
	} {
		t.Run(recipe, func(t *testing.T) {
			s := realStage(t, 2, stands.flags...)
			peers := map[string]*peer{"sidekeeper": s.contenders(t, "sidekeeper"), "curator": s.contenders(t, "curator")}
			contend(t, peers, *acquisitions, stands.ours, alone("curator", recipe))
		})
	}
}

// A LeaderLatch leads beside candidates with the other layout.
func TestLeadersBesideEachOtherAreFound(t *testing.T) {
	s := realStage(t, 1)
	peers := map[string]*peer{"sidekeeper": s.contenders(t, "sidekeeper"), "curator": s.contenders(t, "curator")}
	holds, _ := contendAt(t, peers, contended(lockRoot), 400, alone("sidekeeper", "candidate"), alone("curator", "latch"))
	violations := overlaps(holds)
	t.Logf("%d overlaps: %q", len(violations), violations[:min(1, len(violations))])
	if len(violations) == 0 {
		t.Error("they led one at a time")
	}
}

func campaign(t *testing.T, client *sidekeeper.Client, name, candidate string) *sidekeeper.Leadership {
	t.Helper()
	led, err := client.Campaign(t.Context(), name, sidekeeper.CampaignOptions{Candidate: candidate, Value: candidate + ":80"})
	must(t, err)
	return led
}

// campaignBehind returns when a candidate waits; what it gets comes through the channel.
func campaignBehind(t *testing.T, client *sidekeeper.Client, name, candidate string) <-chan *sidekeeper.Leadership {
	t.Helper()
	queued, elected := make(chan struct{}), make(chan *sidekeeper.Leadership, 1)
	var once sync.Once
	go func() {
		led, err := client.Campaign(t.Context(), name, sidekeeper.CampaignOptions{
			Candidate: candidate, OnCandidate: func(int, *sidekeeper.Leader) { once.Do(func() { close(queued) }) },
		})
		if err != nil {
			t.Errorf("%s: %v", candidate, err)
			close(elected)
			return
		}
		elected <- led
	}()
	select {
	case <-queued:
	case <-elected:
		t.Fatalf("nobody leads %s", name)
	case <-time.After(patience):
		t.Fatalf("nobody waits to lead %s", name)
	}
	return elected
}

// An observer has what is observed of an election.
type observer struct {
	next func() (*sidekeeper.Observation, error, bool)
}

func observe(t *testing.T, client *sidekeeper.Client, name string) observer {
	t.Helper()
	next, stop := iter.Pull2(client.Observe(t.Context(), name))
	t.Cleanup(stop)
	return observer{next}
}

func (o observer) sees(t *testing.T, want string) {
	t.Helper()
	observed, err, _ := o.next()
	must(t, err)
	got := "nobody"
	if leader := observed.Leader; leader != nil {
		got = leader.Candidate
		if leader.Value != "" {
			got += " with " + leader.Value
		}
		if leader.Foreign {
			got += ", foreign"
		}
		if leader.YieldRequested {
			got += ", asked to yield"
		}
	}
	if got != want {
		t.Errorf("observed: %s; want %s", got, want)
	}
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

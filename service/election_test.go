package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// A campaigning is one Campaign stream.
type campaigning struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[electionv1.CampaignResponse]
	cancel context.CancelFunc
	hold   string
	ticket *holdv1.Ticket
}

func (s *scene) campaign(from callers, request *electionv1.CampaignRequest) *campaigning {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.elections.Campaign(ctx, request)
	s.must(err)
	return &campaigning{t: s.t, stream: stream, cancel: cancel}
}

// candidates campaign for the election orders one after the other, and the first leads.
func (s *scene) candidates(names ...string) (all []*campaigning) {
	s.t.Helper()
	for i, name := range names {
		made := s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: name})
		if i == 0 {
			made.sees("elected")
		} else {
			made.sees(fmt.Sprintf("candidate %d behind %s", i, names[0]))
		}
		all = append(all, made)
	}
	return all
}

func (c *campaigning) next() string {
	event, err := c.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch event := event.GetEvent().(type) {
	case *electionv1.CampaignResponse_Candidate:
		leader := event.Candidate.GetLeader()
		return strings.TrimSpace(fmt.Sprintf("candidate %d behind %s %s", event.Candidate.GetPosition(), leader.GetCandidate(), leader.GetValue()))
	case *electionv1.CampaignResponse_Elected:
		c.hold, c.ticket = event.Elected.GetHoldId(), event.Elected.GetTicket()
		return "elected"
	case *electionv1.CampaignResponse_Suspended:
		return "suspended"
	case *electionv1.CampaignResponse_Resumed:
		return "resumed"
	case *electionv1.CampaignResponse_YieldRequested:
		asked := event.YieldRequested
		return strings.TrimSpace(fmt.Sprintf("yield to %q: %s %v", asked.GetTo(), asked.GetReason(), asked.GetGrace() != nil))
	}
	return "an event without a name"
}

func (c *campaigning) sees(events ...string) {
	c.t.Helper()
	for _, event := range events {
		same(c.t, "event", c.next(), event)
	}
}

// comesTo reads over what tells of others ahead, and over suspensions.
func (c *campaigning) comesTo(event string) {
	c.t.Helper()
	for {
		next := c.next()
		if !strings.HasPrefix(next, "candidate") && next != "suspended" && next != "resumed" {
			same(c.t, "event", next, event)
			return
		}
	}
}

// standings are an election in words: the leader, and the others in order.
func (s *scene) standings() string {
	s.t.Helper()
	got, err := s.elections.Get(s.context(), &electionv1.GetRequest{Name: "orders"})
	if err != nil {
		return outcome(err)
	}
	names := []string{got.GetLeader().GetCandidate() + ":"}
	for _, candidate := range got.GetCandidates() {
		names = append(names, candidate.GetCandidate())
	}
	return strings.Join(names, " ")
}

// awaitStandings returns when an election stands so: who steps back is away for a moment.
func (s *scene) awaitStandings(want ...string) {
	s.t.Helper()
	ctx := s.context()
	for now := s.standings(); !slices.Contains(want, now); now = s.standings() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			same(s.t, "election", now, want[0])
			return
		}
	}
}

func (s *scene) transfer(from callers, request *electionv1.TransferRequest) string {
	s.t.Helper()
	request.Name = "orders"
	_, err := from.elections.Transfer(s.context(), request)
	return strings.TrimSpace(outcome(err) + " " + facts(err))
}

func (s *scene) proclaim(ticket *holdv1.Ticket, value string) string {
	s.t.Helper()
	_, err := s.elections.Proclaim(s.context(), &electionv1.ProclaimRequest{Ticket: ticket, Value: value})
	return outcome(err)
}

// An observing is one Watch stream.
type observing struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[electionv1.WatchResponse]
}

func (s *scene) observe() *observing {
	s.t.Helper()
	stream, err := s.elections.Watch(s.context(), &electionv1.WatchRequest{Name: "orders"})
	s.must(err)
	return &observing{s.t, stream}
}

func (o *observing) sees(event string) {
	o.t.Helper()
	news, err := o.stream.Recv()
	if err != nil {
		same(o.t, "end", outcome(err), event)
		return
	}
	same(o.t, "event", expect.Leader(news), event)
}

func TestCandidatesAreElectedInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "a", Value: "a:1"})
	first.sees("elected")
	same(t, "the ticket's lock", first.ticket.GetLock(), "orders")
	second := s.campaign(s.others, &electionv1.CampaignRequest{Name: "orders", Candidate: "b"})
	second.sees("candidate 1 behind a a:1")
	s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "c", WaitTimeout: lasting(0)}).
		sees("FailedPrecondition LOCK_HELD")
	same(t, "election", s.standings(), "a: b")
	_, err := s.elections.Resign(s.context(), &electionv1.ResignRequest{HoldId: first.hold})
	same(t, "Resign", outcome(err), "OK")
	first.sees("OK")
	second.comesTo("elected")
	if second.ticket.GetFencingToken() <= first.ticket.GetFencingToken() {
		t.Errorf("term %v after %v", second.ticket, first.ticket)
	}
	_, err = s.elections.Resign(s.context(), &electionv1.ResignRequest{HoldId: second.hold})
	same(t, "Resign for somebody else", outcome(err), "NotFound HOLD_NOT_FOUND")
}

func TestAnElectionIsTheLockOfItsName(t *testing.T) {
	t.Parallel()
	for _, latch := range []bool{false, true} {
		s := newRegistry(t, func(o *service.Options) { o.LatchElections = latch })
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		leader := s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "a", LeaseId: lease.id})
		leader.sees("elected")
		same(t, "a place named as Curator names it", strings.Contains(s.ensemble.memory.Names("/locks/orders")[0], "-latch-"), latch)
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id}).sees("FailedPrecondition ALREADY_CONTENDING")
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", Mode: holdv1.Mode_MODE_READ}).
			sees("FailedPrecondition LOCK_KIND_MISMATCH")
		holder := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", Owner: "old"})
		holder.sees("queued 1")
		same(t, "election", s.standings(), "a: old")
		same(t, "Check", s.checked(s.callers, leader.hold), "held")
		for _, guard := range []*holdv1.Guard{
			{Hold: &holdv1.Guard_HoldId{HoldId: leader.hold}}, {Hold: &holdv1.Guard_Ticket{Ticket: leader.ticket}},
		} {
			request := putOf("k", "v")
			request.Guards = []*holdv1.Guard{guard}
			_, err := s.Put(s.context(), request)
			same(t, "guarded Put", outcome(err), "OK")
		}
		asked, err := s.callers.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders", Reason: "upgrade"})
		s.must(err)
		same(t, "asked", asked.GetAsked(), int32(1))
		leader.sees(`yield to "": upgrade false`)
		next := s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "b"})
		next.sees("candidate 2 behind a")
		leader.cancel()
		holder.sees("granted")
		holder.cancel()
		next.comesTo("elected")
	}
}

func TestALeaderIsToldOfContactAndOfItsEnd(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		leader := s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "a", LeaseId: lease.id})
		leader.sees("elected")
		lease.session.Suspend()
		leader.sees("suspended")
		lease.session.Resume()
		for next := leader.next(); next != "resumed"; next = leader.next() {
			same(t, "before contact is back", next, "suspended")
		}
		lease.session.Expire()
		leader.comesTo("Aborted LEASE_LOST")
	})
}

func TestAProclaimedValueIsShownAsLongAsTheTermLasts(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		leader := s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "a", Value: "one"})
		leader.sees("elected")
		term := leader.ticket.GetFencingToken()
		watch := s.observe()
		watch.sees(fmt.Sprintf("a in term %d: one", term))
		same(t, "Proclaim", s.proclaim(leader.ticket, "two"), "OK")
		watch.sees(fmt.Sprintf("a in term %d: two", term))
		same(t, "Proclaim again", s.proclaim(leader.ticket, "two"), "OK")

		_, err := s.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders", Reason: "upgrade"})
		s.must(err)
		leader.sees(`yield to "": upgrade false`)
		same(t, "Proclaim by who is asked to yield", s.proclaim(leader.ticket, "three"), "OK")
		same(t, "still asked", s.leader().GetYieldRequested(), true)
		same(t, "value", s.leader().GetValue(), "three")

		overwrite := func() string {
			s.must(s.ensemble.memory.Set("/locks/orders/"+s.ensemble.memory.Names("/locks/orders")[0], []byte("__REVOKE__")))
			s.awaitStandings("a:") // its sidecar says again who it is
			return s.leader().GetValue()
		}
		shown := overwrite()
		for range 20 { // its sidecar may not have seen that it was proclaimed
			if shown == "three" {
				break
			}
			same(t, "Proclaim once more", s.proclaim(leader.ticket, "three"), "OK")
			shown = overwrite()
		}
		same(t, "value after others have overwritten it", shown, "three")

		next := s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "b"})
		next.sees("candidate 1 behind a three")
		waiting, err := s.Get(s.context(), &lockv1.GetRequest{Name: "orders"})
		s.must(err)
		early := &holdv1.Ticket{Lock: "orders", FencingToken: waiting.GetView().GetWaiters()[0].GetToken()}
		same(t, "Proclaim before the term", s.proclaim(early, "x"), "FailedPrecondition GUARD_LOST")
		leader.cancel()
		next.comesTo("elected")
		same(t, "Proclaim after the term", s.proclaim(leader.ticket, "x"), "FailedPrecondition GUARD_LOST")
		same(t, "value of the next", s.leader().GetValue(), "")
	})
}

func (s *scene) leader() *electionv1.Leader {
	s.t.Helper()
	got, err := s.elections.Get(s.context(), &electionv1.GetRequest{Name: "orders"})
	s.must(err)
	return got.GetLeader()
}

func TestAProclamationMeetsOtherWriters(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		leader := s.candidates("a")[0]
		s.ensemble.beforeCommit(func() { // it is asked to yield between the look and the write
			s.must(s.ensemble.memory.Set("/locks/orders/"+s.ensemble.memory.Names("/locks/orders")[0],
				[]byte(`{"sidekeeper":1,"owner":"a","timeout_ms":2000,"value":"","revoke":{"by":"ann"}}`)))
		})
		same(t, "Proclaim", s.proclaim(leader.ticket, "two"), "OK")
		same(t, "value", s.leader().GetValue(), "two")
		same(t, "still asked", s.leader().GetYieldRequested(), true)
	})
}

func TestALeaderThatIsNotOursProclaimsNothing(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		name := "_c_00000000-0000-0000-0000-000000000000-lock-"
		path, err := s.ensemble.memory.Create("/locks/orders/"+name, []byte("jvm"), embedded.PersistentSequential, 0)
		s.must(err)
		same(t, "Proclaim", s.proclaim(s.leader().GetTicket(), "x"), "FailedPrecondition FOREIGN_CANDIDATE")
		node, err := s.ensemble.memory.Read(path)
		s.must(err)
		same(t, "its data", string(node.Data), "jvm")
	})
}

func TestAWatchShowsEachTermAndWhenNobodyLeads(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		watch := s.observe()
		watch.sees("vacant")
		leader := s.candidates("a")[0]
		term := fmt.Sprintf("a in term %d:", leader.ticket.GetFencingToken())
		watch.sees(term)
		s.ensemble.Suspend()
		watch.sees("stale")
		s.observe().sees("stale")
		s.ensemble.Resume()
		watch.sees(term)
		leader.cancel()
		watch.sees("vacant")
	})
}

func TestLeadershipIsHandedToACandidateFurtherBehind(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		all := s.candidates("a", "b", "c", "d", "e")
		same(t, "Transfer", s.transfer(s.callers, &electionv1.TransferRequest{To: "d", Reason: "rebalance"}), "OK")
		all[0].sees(`yield to "d": rebalance false`)
		s.awaitStandings("a: d e b c", "a: d e c b")
		same(t, "Transfer again", s.transfer(s.callers, &electionv1.TransferRequest{To: "d", Reason: "rebalance"}), "OK")
		all[0].cancel()
		all[3].comesTo("elected")
		all[3].cancel()
		all[4].comesTo("elected")
		s.awaitStandings("e: b c", "e: c b") // who has stepped back waits on
	})
}

func TestALeaderIsLeftAloneWhereTheCandidateCannotBeNext(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		all := s.candidates("a", "b")
		lock := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", Owner: "old"})
		lock.sees("queued 2")
		s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "c"}).sees("candidate 3 behind a")
		same(t, "Transfer to nobody", s.transfer(s.callers, &electionv1.TransferRequest{To: "x"}), "NotFound CANDIDATE_NOT_FOUND")
		same(t, "Transfer over a lock", s.transfer(s.callers, &electionv1.TransferRequest{To: "c"}),
			"FailedPrecondition FOREIGN_CANDIDATE candidate=old")
		same(t, "election", s.standings(), "a: b old c")
		lock.cancel()
		s.awaitStandings("a: b c")
		_, err := s.ensemble.memory.Create("/locks/orders/x-lock-", []byte("jvm"), embedded.PersistentSequential, 0)
		s.must(err)
		s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "d"}).sees("candidate 4 behind a")
		same(t, "Transfer over another program's", s.transfer(s.callers, &electionv1.TransferRequest{To: "d"}),
			"FailedPrecondition FOREIGN_CANDIDATE candidate=jvm")
		same(t, "election", s.standings(), "a: b c jvm d")
		same(t, "Transfer to who leads", s.transfer(s.callers, &electionv1.TransferRequest{To: "a"}), "OK")
		same(t, "asked", s.leader().GetYieldRequested(), false)
		all[0].cancel()
		all[1].comesTo("elected") // the leader and it were asked for nothing
	})
}

func TestACandidateThatDoesNotStepBackKeepsTheLeader(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.candidates("a")
		_, err := s.ensemble.memory.Create("/locks/orders/x-lock-", []byte(`{"sidekeeper":1,"owner":"stuck","value":""}`),
			embedded.PersistentSequential, 0)
		s.must(err)
		s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: "c"}).sees("candidate 2 behind a")
		same(t, "Transfer", s.transfer(s.callers, &electionv1.TransferRequest{To: "c"}), "FailedPrecondition FOREIGN_CANDIDATE candidate=stuck")
		same(t, "asked", s.leader().GetYieldRequested(), false)
	}, short)
}

func TestALeaderDoesNotYieldToACandidateThatIsAboutToStepBack(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.candidates("a")
		path, err := s.ensemble.memory.Create("/locks/orders/x-lock-",
			[]byte(`{"sidekeeper":1,"owner":"b","value":"","revoke":{"to":"c"}}`), embedded.PersistentSequential, 0)
		s.must(err)
		same(t, "Transfer", s.transfer(s.callers, &electionv1.TransferRequest{To: "b"}), "FailedPrecondition FOREIGN_CANDIDATE candidate=b")
		same(t, "asked", s.leader().GetYieldRequested(), false)
		s.must(s.ensemble.memory.Delete(path))
		same(t, "Transfer to who has gone", s.transfer(s.callers, &electionv1.TransferRequest{To: "b"}), "NotFound CANDIDATE_NOT_FOUND")
	}, short)
}

func TestOnlyOperatorsEndATermByForce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	all := s.candidates("a", "b", "c")
	same(t, "Transfer", s.transfer(s.callers, &electionv1.TransferRequest{To: "c", Grace: lasting(time.Millisecond)}),
		"PermissionDenied OPERATOR_ONLY")
	same(t, "election", s.standings(), "a: b c")
	same(t, "Transfer by an operator", s.transfer(s.operators, &electionv1.TransferRequest{To: "c", Grace: lasting(time.Second)}), "OK")
	all[0].sees(`yield to "c":  true`, "Aborted LOCK_REVOKED")
	all[2].comesTo("elected")
	same(t, "Check", s.checked(s.callers, all[0].hold), "LOCK_REVOKED")
}

func TestACandidateIsEndedByAnOperator(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		all := s.candidates("a", "b")
		view, err := s.Get(s.context(), &lockv1.GetRequest{Name: "orders"})
		s.must(err)
		for i, of := range []*holdv1.Contender{view.GetView().GetWaiters()[0], view.GetView().GetHolders()[0]} {
			_, err = s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: of.GetToken(), Reason: "stuck"})
			same(t, "Break", outcome(err), "OK")
			all[1-i].comesTo("Aborted LOCK_BROKEN")
		}
	})
}

func TestFieldsOfElectionsHaveRules(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		long := strings.Repeat("x", 129)
		for field, request := range map[string]*electionv1.CampaignRequest{
			"name": {Candidate: "a"}, "candidate": {Name: "orders"}, "value": {Name: "orders", Candidate: "a", Value: strings.Repeat("x", 1025)},
			"lease_id": {Name: "orders", Candidate: "a", LeaseId: "x"},
		} {
			s.campaign(s.callers, request).sees("InvalidArgument INVALID_FIELD " + field)
		}
		s.campaign(s.callers, &electionv1.CampaignRequest{Name: "orders", Candidate: long}).sees("InvalidArgument INVALID_FIELD candidate")
		for field, request := range map[string]*electionv1.TransferRequest{
			"to": {}, "reason": {To: "a", Reason: strings.Repeat("x", 257)}, "grace": {To: "a", Grace: lasting(-1)},
		} {
			request.Name = "orders"
			_, err := s.elections.Transfer(s.context(), request)
			same(t, field, outcome(err), "InvalidArgument INVALID_FIELD "+field)
		}
		same(t, "no ticket", s.proclaim(nil, ""), "InvalidArgument INVALID_FIELD ticket.lock")
		same(t, "value", s.proclaim(&holdv1.Ticket{Lock: "orders", FencingToken: 1}, "\xff"), "Internal")
		same(t, "long value", s.proclaim(&holdv1.Ticket{Lock: "orders", FencingToken: 1}, strings.Repeat("x", 1025)),
			"InvalidArgument INVALID_FIELD value")
		_, err := s.elections.Resign(s.context(), &electionv1.ResignRequest{})
		same(t, "Resign", outcome(err), "InvalidArgument INVALID_FIELD hold_id")
	})
}

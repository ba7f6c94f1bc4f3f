package service_test

import (
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
)

// holdings begins each stream on which something is held or waited for, with its keepalive, and returns what its messages are.
func (s *scene) holdings(target string, keepalive *durationpb.Duration) map[string]func() string {
	s.semaphore("calls", 2)
	s.setBarrier("gate")
	agreement := s.begun(s.callers, "shop", "till")
	connection := s.connection(target)
	ctx := s.context()
	wanted := []*lockv1.WantedLock{{Name: "first"}, {Name: "second"}}
	stream, err := leasev1.NewLeaseServiceClient(connection).Multiplex(ctx)
	s.must(err)
	s.must(stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{Keepalive: keepalive}}}))
	locks, semaphores := lockv1.NewLockServiceClient(connection), semaphorev1.NewSemaphoreServiceClient(connection)
	elections, barriers := electionv1.NewElectionServiceClient(connection), barrierv1.NewBarrierServiceClient(connection)
	once, groups := oncev1.NewOnceServiceClient(connection), membershipv1.NewMembershipServiceClient(connection)
	queues, agreements := queuev1.NewQueueServiceClient(connection), agreementv1.NewAgreementServiceClient(connection)
	return map[string]func() string{
		"lock":       kindsOf(locks.Acquire(ctx, &lockv1.AcquireRequest{Name: "orders", Keepalive: keepalive})),
		"locks":      kindsOf(locks.AcquireAll(ctx, &lockv1.AcquireAllRequest{Locks: wanted, Keepalive: keepalive})),
		"permits":    kindsOf(semaphores.Acquire(ctx, &semaphorev1.AcquireRequest{Name: "calls", Keepalive: keepalive})),
		"leadership": kindsOf(elections.Campaign(ctx, &electionv1.CampaignRequest{Name: "jobs", Candidate: "a", Keepalive: keepalive})),
		"entry":      kindsOf(barriers.Enter(ctx, &barrierv1.EnterRequest{Name: "start", Size: 1, Keepalive: keepalive})),
		"barrier":    kindsOf(barriers.Wait(ctx, &barrierv1.WaitRequest{Name: "gate", Keepalive: keepalive})),
		"attempt":    kindsOf(once.Begin(ctx, &oncev1.BeginRequest{Name: "report", Key: "today", Keepalive: keepalive})),
		"member":     kindsOf(groups.Join(ctx, &membershipv1.JoinRequest{Group: "shop", Member: "a", Keepalive: keepalive})),
		"item":       kindsOf(queues.Take(ctx, &queuev1.TakeRequest{Name: "mail", Keepalive: keepalive})),
		"vote": kindsOf(agreements.Vote(ctx, &agreementv1.VoteRequest{
			Name: "transfers", Agreement: agreement, Participant: "shop", Keepalive: keepalive,
		})),
		"lease":            kindsOf(leasev1.NewLeaseServiceClient(connection).Open(ctx, &leasev1.OpenRequest{Keepalive: keepalive})),
		"a lease's stream": kindsOf(stream, nil),
	}
}

func TestWhatIsHeldBeginsWithTheKeepaliveThatItsCallerAskedForAndGoesOnWithIt(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for of, next := range s.holdings(within, lasting(time.Second)) {
			same(t, of, next(), "keepalive")
			got := next()
			for got == "keepalive" { // as long as there was nothing to say
				got = next()
			}
			same(t, of, got, "news")
			for range 3 {
				if got = next(); got == "keepalive" {
					break
				}
			}
			same(t, of, got, "keepalive")
		}
	})
}

func TestWhatIsHeldSendsNoKeepaliveUnasked(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for of, next := range s.holdings(s.target(), nil) {
		same(t, of, next(), "news")
	}
}

func TestAKeepaliveOutOfRangeIsRefusedBeforeAnythingIsHeld(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for of, next := range s.holdings(s.target(), lasting(time.Second-1)) {
		same(t, of, next(), "InvalidArgument INVALID_FIELD keepalive field=keepalive rule=a duration from 1s to 1h0m0s value="+
			strconv.Quote("999.999999ms"))
	}
	same(t, "sessions", len(s.ensemble.opened), 0)
}

// TestAnAgreementsDecisionFollowsKeepalives sends the decision over a stream that something else is sent over.
func TestAnAgreementsDecisionFollowsKeepalives(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		agreement := s.begun(s.callers, "shop")
		next := kindsOf(s.agreements.Await(s.context(), &agreementv1.AwaitRequest{
			Name: "transfers", Agreement: agreement, Keepalive: lasting(time.Second),
		}))
		same(t, "first", next()+" "+next(), "keepalive keepalive")
		_, err := s.agreements.Abort(s.context(), &agreementv1.AbortRequest{Name: "transfers", Agreement: agreement})
		s.must(err)
		got := next()
		for got == "keepalive" {
			got = next()
		}
		same(t, "then", got+" "+next(), "news OK")
	})
}

func TestAKeepaliveInStartIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stream, err := s.leases.Multiplex(s.context())
	s.must(err)
	s.must(stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}}))
	s.must(stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: &leasev1.Start{
		RequestId: 1, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: "orders", Keepalive: lasting(time.Second)}},
	}}}))
	for {
		message, err := stream.Recv()
		s.must(err)
		if ended := message.GetEnded(); ended != nil {
			same(t, "end", ended.GetReason()+" "+ended.GetMetadata()["field"]+" "+ended.GetMetadata()["rule"],
				"INVALID_FIELD keepalive omitted in start: open says it for the whole stream")
			return
		}
	}
}

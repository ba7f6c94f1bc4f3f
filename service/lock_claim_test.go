package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/service"
)

const claimID, otherID = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"

// claimOf claims the lock `staging` for two minutes.
func claimOf(change ...func(*lockv1.ClaimRequest)) *lockv1.ClaimRequest {
	request := &lockv1.ClaimRequest{
		Name: "staging", ClaimId: claimID, ReserveFor: durationpb.New(2 * time.Minute), Owner: "ci-7", Reason: "apply",
	}
	for _, each := range change {
		each(request)
	}
	return request
}

func TestALockIsHeldWithoutAProcess(t *testing.T) {
	t.Parallel()
	core, said := observer.New(zapcore.DebugLevel)
	log := zap.New(core)
	virtually(t, func(t *testing.T, s *scene) {
		living, stop := context.WithCancel(context.Background())
		defer synctest.Wait()
		defer stop()
		go s.services.Tend(living)
		claimed, err := s.Claim(s.context(), claimOf())
		s.must(err)
		stream, err := s.Acquire(living, &lockv1.AcquireRequest{Name: "staging"})
		s.must(err)
		waiter := &acquiring{t: t, stream: stream, cancel: stop}
		waiter.sees("queued 1")
		again, err := s.Claim(s.context(), claimOf())
		s.must(err)
		same(t, "asked again", proto.Equal(again, claimed), true)
		view, err := s.Get(s.context(), &lockv1.GetRequest{Name: "staging"})
		s.must(err)
		holder := view.GetView().GetHolders()[0]
		same(t, "holder", holder.GetOwner()+" "+holder.GetClaim().GetReason(), "ci-7 apply")
		same(t, "token", holder.GetToken(), claimed.GetFencingToken())
		same(t, "until", holder.GetClaim().GetUntil().AsTime(), claimed.GetUntil().AsTime())
		time.Sleep(time.Minute)
		extended, err := s.Extend(s.context(), &lockv1.ExtendRequest{ClaimId: claimID, ReserveFor: durationpb.New(3 * time.Minute)})
		s.must(err)
		same(t, "extended by", extended.GetUntil().AsTime().Sub(claimed.GetUntil().AsTime()), 2*time.Minute)
		checked, err := s.Check(s.context(), &lockv1.CheckRequest{ClaimIds: []string{claimID, otherID}})
		s.must(err)
		same(t, "valid for", checked.GetClaims()[0].GetValidFor().AsDuration(), 58*time.Second)
		same(t, "another", checked.GetClaims()[1].GetReason(), "CLAIM_NOT_FOUND")
		_, err = s.Revoke(s.context(), &lockv1.RevokeRequest{Name: "staging"})
		same(t, "revoke", outcome(err), "FailedPrecondition NO_PROCESS")
		time.Sleep(3*time.Minute - 10*time.Second) // it runs out
		checked, err = s.Check(s.context(), &lockv1.CheckRequest{ClaimIds: []string{claimID}})
		s.must(err)
		same(t, "ten seconds before its end", checked.GetClaims()[0].GetReason(), "")
		same(t, "claims", fmt.Sprint(s.services.ClaimStates()), "map[ends_soon:1]")
		time.Sleep(30 * time.Second)
		waiter.sees("granted")
		same(t, "claims, then", fmt.Sprint(s.services.ClaimStates()), "map[]")
		_, err = s.Release(s.context(), &lockv1.ReleaseRequest{ClaimId: claimID})
		same(t, "release", outcome(err), "FailedPrecondition CLAIM_ENDED")
		waiter.cancel()
	}, func(options *service.Options) { options.Log, options.Audit = log, log })
	expired := said.FilterMessage("expiry").All()
	same(t, "expiries", len(expired), 1)
	same(t, "expired", fmt.Sprint(expired[0].ContextMap()["name"]), "staging")
	told := 0
	for _, line := range said.All() {
		if fields := line.ContextMap(); fields["kind"] == "claim" {
			told++
		}
		for _, field := range line.Context {
			if strings.Contains(field.String, claimID) {
				t.Errorf("%s: %s has the claim's id", line.Message, field.Key)
			}
		}
	}
	same(t, "lines of the audit", told, 4)
}

func TestAClaimIsRefusedWhatNoClaimCanBe(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for want, change := range map[string]func(*lockv1.ClaimRequest){
			"name":         func(r *lockv1.ClaimRequest) { r.Name = "a//b" },
			"claim_id":     func(r *lockv1.ClaimRequest) { r.ClaimId = "mine" },
			"reserve_for":  func(r *lockv1.ClaimRequest) { r.ReserveFor = nil },
			"reason":       func(r *lockv1.ClaimRequest) { r.Reason = " " },
			"owner":        func(r *lockv1.ClaimRequest) { r.Owner = strings.Repeat("x", 129) },
			"wait_timeout": func(r *lockv1.ClaimRequest) { r.WaitTimeout = durationpb.New(-1) },
			"mode":         func(r *lockv1.ClaimRequest) { r.Mode = 7 },
		} {
			_, err := s.Claim(s.context(), claimOf(change))
			same(t, want, outcome(err), "InvalidArgument INVALID_FIELD "+want)
		}
		_, err := s.Claim(s.context(), claimOf(func(r *lockv1.ClaimRequest) { r.ReserveFor = durationpb.New(59 * time.Second) }))
		same(t, "59 seconds", outcome(err), "InvalidArgument INVALID_FIELD reserve_for")
		_, err = s.Extend(s.context(), &lockv1.ExtendRequest{ClaimId: claimID})
		same(t, "extend", outcome(err), "InvalidArgument INVALID_FIELD reserve_for")
		_, err = s.Extend(s.context(), &lockv1.ExtendRequest{ClaimId: claimID, ReserveFor: durationpb.New(time.Hour)})
		same(t, "extend none", outcome(err), "NotFound CLAIM_NOT_FOUND")
		_, err = s.Release(s.context(), &lockv1.ReleaseRequest{ClaimId: claimID})
		same(t, "release none", outcome(err), "NotFound CLAIM_NOT_FOUND")
		_, err = s.Release(s.context(), &lockv1.ReleaseRequest{ClaimId: claimID, HoldId: otherID})
		same(t, "release both", outcome(err), "InvalidArgument INVALID_FIELD claim_id")
		_, err = s.Check(s.context(), &lockv1.CheckRequest{ClaimIds: make([]string, 17)})
		same(t, "check 17", outcome(err), "InvalidArgument INVALID_FIELD claim_ids")
		_, err = s.Claim(s.context(), claimOf())
		s.must(err)
		_, err = s.Claim(s.context(), claimOf(func(r *lockv1.ClaimRequest) { r.Name = "other" }))
		same(t, "of another lock", outcome(err), "InvalidArgument INVALID_FIELD claim_id")
		once := func(r *lockv1.ClaimRequest) { r.ClaimId, r.WaitTimeout = otherID, durationpb.New(0) }
		_, err = s.Claim(s.context(), claimOf(once))
		same(t, "once", outcome(err), "FailedPrecondition LOCK_HELD")
		_, err = s.Claim(s.context(), claimOf(once, func(r *lockv1.ClaimRequest) { r.WaitTimeout = durationpb.New(time.Second) }))
		same(t, "for a second", outcome(err), "DeadlineExceeded WAIT_TIMEOUT")
		_, err = s.Claim(s.context(), claimOf(once, func(r *lockv1.ClaimRequest) { r.Mode = 2 }))
		same(t, "the other kind", outcome(err), "FailedPrecondition LOCK_KIND_MISMATCH")
		same(t, "places", len(s.ensemble.memory.Names("/locks/staging")), 1)
		_, err = s.Release(s.context(), &lockv1.ReleaseRequest{ClaimId: claimID})
		s.must(err)
		_, err = s.Claim(s.context(), claimOf())
		same(t, "a second time", outcome(err), "FailedPrecondition CLAIM_ENDED")
	})
}

// What stands on a lock's holders treats a claim as one of them.
func TestAClaimCountsWhereHoldersDo(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		claimed, err := s.Claim(s.context(), claimOf())
		s.must(err)
		token := claimed.GetFencingToken()
		same(t, "guarded", r.guarded(byTicket("staging", token)), "written")
		verify := func() bool {
			answer, err := fencingv1.NewFencingServiceClient(r.connection(r.target())).Verify(s.context(), &fencingv1.VerifyRequest{
				Ticket: &holdv1.Ticket{Lock: "staging", FencingToken: token},
			})
			s.must(err)
			return answer.GetHeld()
		}
		same(t, "verified", verify(), true)
		candidate := s.campaign(s.callers, &electionv1.CampaignRequest{Name: "staging", Candidate: "next"})
		candidate.sees("candidate 1 behind ci-7")
		_, err = s.elections.Transfer(s.context(), &electionv1.TransferRequest{Name: "staging", To: "next"})
		same(t, "leadership that is claimed", outcome(err), "FailedPrecondition NO_PROCESS")
		candidate.cancel()
		synctest.Wait() // until its place has gone
		all, err := s.AcquireAll(s.context(), &lockv1.AcquireAllRequest{Locks: []*lockv1.WantedLock{{Name: "staging"}, {Name: "free"}}})
		s.must(err)
		event, err := all.Recv()
		s.must(err)
		same(t, "several locks wait for it", event.GetQueued().GetLocks()[0].GetName(), "staging")
		watch := s.watch("staging")
		watch.sees("1 + 1")
		same(t, "watched", watch.last.GetHolders()[0].GetClaim().GetReason(), "apply")
		_, err = s.elections.Transfer(s.context(), &electionv1.TransferRequest{Name: "staging", To: "anybody"})
		same(t, "leadership for none", outcome(err), "NotFound CANDIDATE_NOT_FOUND")
		explained, err := s.Explain(s.context(), &lockv1.ExplainRequest{Name: "staging"})
		s.must(err)
		holder := explained.GetLocks()[0].GetHolders()[0]
		same(t, "explained", holder.GetContender().GetClaim().GetReason()+" "+holder.GetLease(), "apply ")
		same(t, "circles", len(explained.GetCycles()), 0)
		_, err = s.operators.Break(s.context(), &lockv1.BreakRequest{
			Name: "staging", FencingToken: token, Reason: "leaked", ForceAfter: durationpb.New(time.Second),
		})
		s.must(err)
		event, err = all.Recv()
		s.must(err)
		same(t, "granted, then", len(event.GetGranted().GetLocks()), 2)
		same(t, "guarded, then", r.guarded(byTicket("staging", token)), "FailedPrecondition GUARD_LOST")
		same(t, "verified, then", verify(), false)
	})
}

package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// begun begins an agreement and returns its id.
func (s *scene) begun(from callers, participants ...string) string {
	s.t.Helper()
	response, err := from.agreements.Begin(s.context(), &agreementv1.BeginRequest{
		Name: "transfers", Participants: participants, Timeout: durationpb.New(time.Minute), Value: []byte("100"),
	})
	s.must(err)
	return response.GetAgreement()
}

// A voting is one Vote stream.
type voting struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[agreementv1.VoteResponse]
	cancel context.CancelFunc
}

func (s *scene) voting(from callers, agreement, participant, lease string) *voting {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.agreements.Vote(ctx, &agreementv1.VoteRequest{
		Name: "transfers", Agreement: agreement, Participant: participant, LeaseId: lease,
	})
	s.must(err)
	return &voting{s.t, stream, cancel}
}

func (v *voting) sees(events ...string) {
	v.t.Helper()
	for _, event := range events {
		same(v.t, "event", v.next(), event)
	}
}

func (v *voting) next() string {
	event, err := v.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch event := event.GetEvent().(type) {
	case *agreementv1.VoteResponse_Voted:
		return "voted"
	case *agreementv1.VoteResponse_Decided:
		return event.Decided.GetDecision().String()
	case *agreementv1.VoteResponse_Suspended:
		return "suspended"
	case *agreementv1.VoteResponse_Resumed:
		return "resumed"
	}
	return "an event without a name"
}

// awaits is what Await says.
func (s *scene) awaits(from callers, agreement string) string {
	stream, err := from.agreements.Await(s.context(), &agreementv1.AwaitRequest{Name: "transfers", Agreement: agreement})
	if err != nil {
		return outcome(err)
	}
	response, err := stream.Recv()
	if err != nil {
		return outcome(err)
	}
	_, err = stream.Recv()
	same(s.t, "the end of Await", outcome(err), "OK")
	return response.GetDecision().String()
}

func TestParticipantsThatAllVoteAreToldCommitAndSoIsWhoeverAsksLater(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		c := s.callers
		id := s.begun(c, "a", "b")
		first := s.voting(c, id, "a", "")
		first.sees("voted")
		same(t, "before", s.agreementsOf(c), id+" [a b] 100 [a] DECISION_UNSPECIFIED")
		second := s.voting(c, id, "b", "")
		second.sees("voted", "DECISION_COMMIT", "OK")
		first.sees("DECISION_COMMIT", "OK")
		same(t, "await", s.awaits(c, id), "DECISION_COMMIT")
		aborted, err := c.agreements.Abort(s.context(), &agreementv1.AbortRequest{Name: "transfers", Agreement: id})
		s.must(err)
		same(t, "abort", aborted.GetDecision(), agreementv1.Decision_DECISION_COMMIT)
		s.voting(c, id, "a", "").sees("voted", "DECISION_COMMIT", "OK")
		same(t, "after", s.agreementsOf(c), id+" [a b] 100 [] DECISION_COMMIT")
	})
}

// It has no place in the ensemble, and no token.
func TestAVoteOnWhatIsDecidedIsGrantedInTheAudit(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	virtually(t, func(t *testing.T, s *scene) {
		c := s.callers
		id := s.begun(c, "a", "b")
		_, err := c.agreements.Abort(s.context(), &agreementv1.AbortRequest{Name: "transfers", Agreement: id})
		s.must(err)
		s.voting(c, id, "a", "").sees("voted", "DECISION_ABORT", "OK")
		same(t, "granted", lines.FilterMessage("grant").Len(), 1)
		same(t, "come back to", lines.FilterMessage("resumption").Len(), 0)
	}, func(o *service.Options) { o.Audit = zap.New(core) })
}

// agreementsOf is what Get shows.
func (s *scene) agreementsOf(from callers) (all string) {
	response, err := from.agreements.Get(s.context(), &agreementv1.GetRequest{Name: "transfers"})
	s.must(err)
	for _, of := range response.GetAgreements() {
		all += fmt.Sprintf("%s %s %s %s %s", of.GetAgreement(), of.GetParticipants(), of.GetValue(), of.GetVoted(), of.GetDecision())
	}
	return all
}

func TestAParticipantThatIsLostOrLeavesIsAbortForAll(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(s *scene, first *voting, lease *opening, id string){
		"its stream ended":    func(_ *scene, first *voting, _ *opening, _ string) { first.cancel(); first.sees("Canceled") },
		"its session expired": func(_ *scene, _ *voting, lease *opening, _ string) { lease.session.Expire() },
		"its lease was closed": func(_ *scene, first *voting, lease *opening, _ string) {
			lease.cancel()
			first.sees("Aborted LEASE_CLOSED")
		},
		"the sidecar stopped": func(s *scene, first *voting, _ *opening, _ string) {
			s.drain(0)
			first.sees("Aborted SIDECAR_STOPPING")
		},
		"somebody asked": func(s *scene, first *voting, _ *opening, id string) {
			aborted, err := s.others.agreements.Abort(s.context(), &agreementv1.AbortRequest{Name: "transfers", Agreement: id})
			s.must(err)
			same(s.t, "abort", aborted.GetDecision(), agreementv1.Decision_DECISION_ABORT)
			first.sees("DECISION_ABORT", "OK")
		},
		"another votes in its name": func(s *scene, first *voting, _ *opening, id string) {
			s.voting(s.others, id, "a", "").sees("voted", "DECISION_ABORT", "OK")
			first.sees("DECISION_ABORT", "OK")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			beside := s.beside() // another sidecar
			id := s.begun(s.callers, "a", "b")
			lease := s.open(s.callers, &leasev1.OpenRequest{})
			first := s.voting(s.callers, id, "a", lease.id)
			first.sees("voted")
			if name != "another votes in its name" {
				s.voting(s.callers, id, "a", lease.id).sees("FailedPrecondition ALREADY_CONTENDING")
			}
			decision := make(chan string, 1)
			go func() { decision <- s.awaits(beside.callers, id) }()
			happens(s, first, lease, id)
			same(t, "who awaits", <-decision, "DECISION_ABORT")
			s.voting(beside.callers, id, "b", "").sees("voted", "DECISION_ABORT", "OK")
		})
	}
}

func TestAVoteIsToldThatContactIsLostAndBack(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		id := s.begun(s.callers, "a", "b")
		lease := s.open(s.callers, &leasev1.OpenRequest{Ttl: lasting(time.Minute)})
		first := s.voting(s.callers, id, "a", lease.id)
		first.sees("voted")
		lease.session.Suspend()
		first.sees("suspended")
		lease.session.Resume()
		next := first.next()
		for next == "suspended" {
			next = first.next()
		}
		same(t, "event", next, "resumed")
		s.voting(s.callers, id, "b", "").sees("voted", "DECISION_COMMIT", "OK")
		first.sees("DECISION_COMMIT", "OK")
	})
}

func TestTheAuditTellsWhoMadeAnAgreementAbort(t *testing.T) {
	t.Parallel()
	for name, aborts := range map[string]func(s *scene, id string){
		"Await behind the deadline": func(s *scene, id string) {
			same(s.t, "await", s.awaits(s.callers, id), "DECISION_ABORT")
		},
		"Vote behind the deadline": func(s *scene, id string) {
			s.voting(s.callers, id, "a", "").sees("voted", "DECISION_ABORT", "OK")
		},
		"a voter that leaves": func(s *scene, id string) {
			leaving := s.voting(s.callers, id, "a", "")
			leaving.sees("voted")
			leaving.cancel()
			leaving.sees("Canceled")
		},
		"Abort": func(s *scene, id string) {
			_, err := s.callers.agreements.Abort(s.context(), &agreementv1.AbortRequest{Name: "transfers", Agreement: id})
			s.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, lines := observer.New(zap.InfoLevel)
			virtually(t, func(t *testing.T, s *scene) {
				id := s.begun(s.callers, "a", "b")
				aborts(s, id)
				synctest.Wait()
				same(t, "await again", s.awaits(s.callers, id), "DECISION_ABORT")
				told := lines.FilterMessage("write").FilterField(zap.String("action", "abort")).All()
				same(t, "lines", len(told), 1)
				fields := told[0].ContextMap()
				same(t, "line", fmt.Sprintln(fields["caller"], fields["kind"], fields["name"], fields["outcome"]),
					"tcp:loopback agreement transfers OK\n")
			}, func(o *service.Options) { o.Audit = zap.New(core) })
		})
	}
}

// manyBytes are names of 200 bytes each.
func manyBytes(count int) (all []string) {
	for i := range count {
		all = append(all, fmt.Sprintf("%0200d", i))
	}
	return all
}

func TestAgreementsAreRefusedWhoseFieldsBreakRules(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		minute := durationpb.New(time.Minute)
		for want, request := range map[string]*agreementv1.BeginRequest{
			"name":         {Name: "..", Participants: []string{"a"}, Timeout: minute},
			"participants": {Name: "transfers", Timeout: minute},
			"timeout":      {Name: "transfers", Participants: []string{"a"}, Timeout: durationpb.New(time.Hour + 1)},
			"value":        {Name: "transfers", Participants: []string{"a"}, Timeout: minute, Value: make([]byte, 4097)},
		} {
			_, err := s.agreements.Begin(s.context(), request)
			same(t, want, outcome(err), "InvalidArgument INVALID_FIELD "+want)
		}
		for _, request := range []*agreementv1.BeginRequest{
			{Name: "transfers", Participants: []string{"a", "a"}, Timeout: minute},
			{Name: "transfers", Participants: []string{"a/b"}, Timeout: minute},
			{Name: "transfers", Participants: make([]string, 33), Timeout: minute},
			{Name: "transfers", Participants: manyBytes(21), Timeout: minute},
			{Name: "transfers", Participants: []string{"a"}},
		} {
			_, err := s.agreements.Begin(s.context(), request)
			same(t, "refused", strings.HasPrefix(outcome(err), "InvalidArgument INVALID_FIELD"), true)
		}
		id := s.begun(s.callers, "a")
		s.voting(s.callers, id, "b", "").sees("InvalidArgument INVALID_FIELD participant")
		s.voting(s.callers, "", "a", "").sees("InvalidArgument INVALID_FIELD agreement")
		forget := &agreementv1.ForgetRequest{Name: "transfers", Agreement: id}
		_, err := s.agreements.Forget(s.context(), forget)
		same(t, "forget of what is not decided", outcome(err), "FailedPrecondition PRECONDITION_FAILED")
		_, err = s.agreements.Abort(s.context(), &agreementv1.AbortRequest{Name: "transfers", Agreement: id})
		s.must(err)
		_, err = s.agreements.Forget(s.context(), forget)
		s.must(err)
		s.voting(s.callers, id, "a", "").sees("NotFound AGREEMENT_NOT_FOUND")
		same(t, "await", s.awaits(s.callers, id), "NotFound AGREEMENT_NOT_FOUND")
	})
}

// A vote that may have been sent is not said to be nothing.
func TestAVoteThatMayStandIsNotDenied(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(s *scene, lease *opening) (vote *voting){
		"the ensemble falls silent": func(s *scene, lease *opening) *voting {
			lease.session.Before(func(operation standin.Operation) error {
				if operation.Name == "Create" {
					return recipes.ErrUnreachable
				}
				return nil
			})
			return s.voting(s.callers, s.begun(s.callers, "a", "b"), "a", lease.id)
		},
		"the sidecar begins to stop": func(s *scene, lease *opening) *voting {
			sent, answered := make(chan struct{}), make(chan struct{})
			s.t.Cleanup(func() { close(answered) })
			lease.session.After(func(operation standin.Operation) error {
				if operation.Name == "Create" {
					close(sent)
					<-answered
				}
				return nil
			})
			vote := s.voting(s.callers, s.begun(s.callers, "a", "b"), "a", lease.id)
			<-sent
			s.drain(time.Minute)
			return vote
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			said := happens(s, s.open(s.callers, &leasev1.OpenRequest{})).next()
			if said != "Aborted OUTCOME_UNKNOWN" && said != "Aborted SIDECAR_STOPPING" { // after both the caller asks
				t.Error(said)
			}
		})
	}
}

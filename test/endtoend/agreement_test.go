package endtoend

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
)

// An agreeing is one agreement, and the calls for it of two sidecars.
type agreeing struct {
	t        *testing.T
	name, id string
	through  []agreementv1.AgreementServiceClient
}

func beginAgreement(t *testing.T, sidecars []*sidecar) agreeing {
	t.Helper()
	a := agreeing{t: t, name: fmt.Sprint("agreed/", now())}
	for _, s := range sidecars {
		a.through = append(a.through, agreementv1.NewAgreementServiceClient(dial(t, s.address())))
	}
	begun, err := a.through[0].Begin(t.Context(), &agreementv1.BeginRequest{
		Name: a.name, Participants: []string{"0", "1"}, Timeout: durationpb.New(time.Minute),
	})
	must(t, err)
	a.id = begun.GetAgreement()
	return a
}

// votes returns when a participant has voted, through the sidecar of the same number, with this lease or with one for itself.
func (a agreeing) votes(participant int, lease string) grpc.ServerStreamingClient[agreementv1.VoteResponse] {
	a.t.Helper()
	stream, err := a.through[participant].Vote(a.t.Context(), &agreementv1.VoteRequest{
		Name: a.name, Agreement: a.id, Participant: fmt.Sprint(participant), LeaseId: lease,
	})
	must(a.t, err)
	event, err := stream.Recv()
	must(a.t, err)
	if event.GetVoted() == nil {
		a.t.Fatalf("first came %v", event)
	}
	return stream
}

// decided returns when a vote is told the decision, and fails the test unless that is the one.
func (a agreeing) decided(vote grpc.ServerStreamingClient[agreementv1.VoteResponse], want agreementv1.Decision) {
	a.t.Helper()
	for {
		event, err := vote.Recv()
		must(a.t, err)
		if decided := event.GetDecided(); decided != nil {
			if decided.GetDecision() != want {
				a.t.Fatalf("decided %s, want %s", decided.GetDecision(), want)
			}
			return
		}
	}
}

func (a agreeing) awaits(through int, want agreementv1.Decision) {
	a.t.Helper()
	asked := &agreementv1.AwaitRequest{Name: a.name, Agreement: a.id}
	ask := func() (*agreementv1.AwaitResponse, error) {
		stream, err := a.through[through].Await(a.t.Context(), asked)
		must(a.t, err)
		return stream.Recv()
	}
	awaited, err := ask()
	for status.Code(err) == codes.Unavailable { // who was frozen has to reach the ensemble again
		await(a.t, "a while", patient, after(100*time.Millisecond))
		awaited, err = ask()
	}
	must(a.t, err)
	if awaited.GetDecision() != want {
		a.t.Fatalf("who awaits hears %s, want %s", awaited.GetDecision(), want)
	}
}

// All vote, and hear of COMMIT; then the sidecar of one is frozen after its vote, and hears what was decided meanwhile when it is back.
func TestParticipantsOfTwoSidecarsHearOfOneDecision(t *testing.T) {
	sidecars := quickSidecars(t, 2)
	a := beginAgreement(t, sidecars)
	votes := []grpc.ServerStreamingClient[agreementv1.VoteResponse]{a.votes(0, ""), a.votes(1, "")}
	for i, vote := range votes {
		a.decided(vote, agreementv1.Decision_DECISION_COMMIT)
		a.awaits(i, agreementv1.Decision_DECISION_COMMIT)
	}

	a = beginAgreement(t, sidecars)
	a.votes(1, sidecars[1].lasting(t, 10*time.Second)) // which soon expires
	sidecars[1].freeze()
	a.awaits(0, agreementv1.Decision_DECISION_ABORT) // once its session has expired
	a.decided(a.votes(0, ""), agreementv1.Decision_DECISION_ABORT)
	sidecars[1].thaw()
	a.awaits(1, agreementv1.Decision_DECISION_ABORT)
}

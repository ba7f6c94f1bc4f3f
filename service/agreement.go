package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// The rules of agreements, as the proto states them.
const (
	longestProposal     = 4 << 10
	longestParticipants = 4 << 10 // in all: Get tells of all agreements of a name in one message
	longestAgreement    = time.Hour
)

// agreementService answers sidekeeper.agreement.v1.AgreementService.
type agreementService struct {
	agreementv1.UnsafeAgreementServiceServer

	services *Services
}

// parse checks the names in a request. The audit has it when the caller makes the outcome ABORT by whatever it asked for.
func (a *agreementService) parse(ctx context.Context, request interface{ GetName() string }) (asked name, all recipes.Agreements, err error) {
	if asked, err = parseName("name", request.GetName()); err != nil {
		return asked, all, err
	}
	if of, one := request.(interface{ GetAgreement() string }); one {
		_, err = parseSegment("agreement", of.GetAgreement())
	}
	all.Path = directory{root: a.services.options.AgreementRoot}.flat(asked)
	all.Aborted = func(err error) { a.services.audit.wrote(caller.Of(ctx), kindAgreement, "abort", asked.text, err) }
	return asked, all, err
}

func parseProposal(request *agreementv1.BeginRequest) (of recipes.Proposal, _ error) {
	of.Participants, of.Value = request.GetParticipants(), request.GetValue()
	if count := len(of.Participants); count < 1 || count > recipes.MaxParticipants {
		return of, invalid("participants", fmt.Sprint(count, " participants"), fmt.Sprintf("from 1 to %d", recipes.MaxParticipants))
	}
	for i, participant := range of.Participants {
		if _, err := parseSegment("participants", participant); err != nil {
			return of, err
		}
		if slices.Contains(of.Participants[:i], participant) {
			return of, invalid("participants", participant, "each of them once")
		}
	}
	if length := len(strings.Join(of.Participants, "")); length > longestParticipants {
		return of, invalid("participants", fmt.Sprint(length, " bytes"), fmt.Sprintf("at most %d bytes in all", longestParticipants))
	}
	if length := len(of.Value); length > longestProposal {
		return of, invalid("value", fmt.Sprint(length, " bytes"), fmt.Sprintf("at most %d bytes", longestProposal))
	}
	timeout, err := parseDuration("timeout", request.GetTimeout(), time.Millisecond, longestAgreement)
	if err != nil || timeout == nil {
		return of, errors.Join(err, invalid("timeout", "", "required"))
	}
	of.Timeout = *timeout
	return of, nil
}

func (a *agreementService) Begin(ctx context.Context, request *agreementv1.BeginRequest) (*agreementv1.BeginResponse, error) {
	asked, all, err := a.parse(ctx, request)
	if err != nil {
		return nil, err
	}
	proposal, err := parseProposal(request)
	if err != nil {
		return nil, err
	}
	id, err := all.Begin(ctx, a.services.ensemble, proposal)
	a.services.audit.wrote(caller.Of(ctx), kindAgreement, "begin", asked.text, err)
	return &agreementv1.BeginResponse{Agreement: id}, err
}

func (a *agreementService) Abort(ctx context.Context, request *agreementv1.AbortRequest) (*agreementv1.AbortResponse, error) {
	asked, all, err := a.parse(ctx, request)
	if err != nil {
		return nil, err
	}
	all.Aborted = nil // the next line tells of it, whether it was decided before or not
	decision, err := all.Abort(ctx, a.services.ensemble, request.GetAgreement())
	a.services.audit.wrote(caller.Of(ctx), kindAgreement, "abort", asked.text, err)
	return &agreementv1.AbortResponse{Decision: decided(decision)}, err
}

func (a *agreementService) Forget(ctx context.Context, request *agreementv1.ForgetRequest) (*agreementv1.ForgetResponse, error) {
	asked, all, err := a.parse(ctx, request)
	if err != nil {
		return nil, err
	}
	err = all.Forget(ctx, a.services.ensemble, request.GetAgreement())
	a.services.audit.wrote(caller.Of(ctx), kindAgreement, "forget", asked.text, err)
	return &agreementv1.ForgetResponse{}, err
}

func (a *agreementService) Await(request *agreementv1.AwaitRequest, stream grpc.ServerStreamingServer[agreementv1.AwaitResponse]) error {
	_, all, err := a.parse(stream.Context(), request)
	if err != nil {
		return err
	}
	keepalive := &agreementv1.AwaitResponse{Keepalive: alive}
	return holdNothing(a.services, request, stream, keepalive,
		func(ctx context.Context, _ func(*agreementv1.AwaitResponse)) (*agreementv1.AwaitResponse, error) {
			decision, err := all.Await(ctx, a.services.ensemble, request.GetAgreement())
			if err != nil {
				return nil, err
			}
			return &agreementv1.AwaitResponse{Decision: decided(decision)}, nil
		})
}

func (a *agreementService) Get(ctx context.Context, request *agreementv1.GetRequest) (*agreementv1.GetResponse, error) {
	_, all, err := a.parse(ctx, request)
	if err != nil {
		return nil, err
	}
	found, err := all.List(ctx, a.services.ensemble)
	response := &agreementv1.GetResponse{}
	for i := range found {
		of := &found[i]
		shown := &agreementv1.Agreement{
			Agreement: of.ID, Participants: of.Participants, Value: of.Value, Deadline: timestamppb.New(of.Deadline()), Decision: decided(of.Decision),
		}
		for voter, voted := range of.Voted {
			if voted {
				shown.Voted = append(shown.Voted, of.Participants[voter])
			}
		}
		response.Agreements = append(response.Agreements, shown)
	}
	return response, err
}

func decided(decision recipes.Decision) agreementv1.Decision {
	return agreementv1.Decision(agreementv1.Decision_value["DECISION_"+string(decision)])
}

// A voteRequest is one request to Vote. It holds a vote until there is a decision.
type voteRequest struct {
	*held[*recipes.Vote, *agreementv1.VoteResponse]

	request *agreementv1.VoteRequest
	name    name
	all     recipes.Agreements
	decided bool
}

// voteParams is one that does not wait for its turn.
type voteParams struct{ *agreementv1.VoteRequest }

func (voteParams) GetWaitTimeout() *durationpb.Duration { return nil }

func (a *agreementService) Vote(request *agreementv1.VoteRequest, stream grpc.ServerStreamingServer[agreementv1.VoteResponse]) error {
	keepalive := &agreementv1.VoteResponse{Event: &agreementv1.VoteResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, a.vote)
}

func (a *agreementService) vote(request *agreementv1.VoteRequest, on line[*agreementv1.VoteResponse]) (holder, error) {
	asked, all, err := a.parse(on.call, request)
	if err != nil {
		return nil, err
	}
	params, err := parseHeld(voteParams{request})
	if err != nil {
		return nil, err
	}
	v := &voteRequest{request: request, name: asked, all: all}
	v.held = newHeld(a.services, on, heldRecipe[*recipes.Vote, *agreementv1.VoteResponse]{
		heldParams: params, heldWords: voteWords, resource: resource{kindAgreement, asked.text + ":" + request.GetAgreement()},
		steps: v, means: v.means, early: true, removed: recipes.ErrNoAgreement,
		awaited: func(error) bool { return true }, // by the others, for whom it excludes nothing
		gone:    func() { v.gone(context.WithoutCancel(on.call)) },
	})
	return v.held, nil
}

var voteWords = wordsOf[*agreementv1.VoteResponse]()

func (v *voteRequest) join(ctx context.Context, about recipes.About) (*recipes.Vote, error) {
	return v.all.Vote(ctx, v.services.ensemble, v.lease.session, v.request.GetAgreement(), v.request.GetParticipant(), about)
}

// ask has the vote certain to be its caller's.
func (v *voteRequest) ask(ctx context.Context) (turn, error) {
	return turn{granted: true}, v.lease.session.Prove(ctx)
}

// means says what an error means to a caller that may have voted.
func (v *voteRequest) means(err error) error {
	switch {
	case errors.Is(err, recipes.ErrNoParticipant):
		return invalid("participant", v.request.GetParticipant(), "one of those that Begin named")
	case v.taking == nil:
	case errors.Is(err, recipes.ErrUnreachable), errors.Is(err, errStopping), errors.Is(err, errHoldStopped),
		v.single && (errors.Is(err, recipes.ErrSessionEnded) || errors.Is(err, errLeaseLost)):
		return fmt.Errorf("%w: the vote may be part of a decision: %s", recipes.ErrOutcomeUnknown, err.Error()) // which says that nothing is held
	}
	return err
}

// begin makes a hold of the vote, for which a sidecar that stops waits. The first look is due at once.
func (v *voteRequest) begin(context.Context) (*agreementv1.VoteResponse, nodeState) {
	v.beginHold(&hold{name: v.name, token: v.place.Token})
	return &agreementv1.VoteResponse{Event: &agreementv1.VoteResponse_Voted{Voted: &agreementv1.Voted{}}}, nodeState{changed: recipes.Given()}
}

// look awaits the decision, tells it and then ends the stream.
func (v *voteRequest) look(ctx context.Context) (nodeState, error) {
	decision, err := v.all.Await(ctx, v.services.ensemble, v.request.GetAgreement())
	for _, final := range []error{recipes.ErrNoAgreement, recipes.ErrDenied, recipes.ErrQuota} {
		if errors.Is(err, final) {
			return nodeState{act: func() error { return err }}, nil
		}
	}
	return nodeState{act: func() error {
		v.decided = true
		v.put(topicMetadata, func() (*agreementv1.VoteResponse, bool) {
			told := &agreementv1.Decided{Decision: decided(decision)}
			return &agreementv1.VoteResponse{Event: &agreementv1.VoteResponse_Decided{Decided: told}}, true
		})
		v.put(topicSent, func() (none *agreementv1.VoteResponse, _ bool) {
			v.acknowledged.close()
			return none, false
		})
		return nil
	}}, err
}

// gone has an agreement aborted whose participant is. Those who have seen the vote stand do so as well.
func (v *voteRequest) gone(ctx context.Context) {
	if !v.decided {
		_, _ = v.all.Abort(ctx, v.services.ensemble, v.request.GetAgreement())
	}
}

package service

import (
	"context"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// longestShown bounds what a candidate shows: it stands in its node, which others read as text.
const longestShown = 1 << 10

// electionService answers sidekeeper.election.v1.ElectionService. An election is the lock of its name: here are its words alone.
type electionService struct {
	electionv1.UnsafeElectionServiceServer

	services *Services
}

func (e *electionService) election(n name) recipes.Lock {
	return e.services.lockDirectory().election(n)
}

// A campaign is a CampaignRequest as one for a lock.
type campaign struct{ *electionv1.CampaignRequest }

func (c campaign) GetOwner() string { return c.GetCandidate() }

func parseCampaign(request *electionv1.CampaignRequest) (params acquireParams, err error) {
	if params.name, err = parseName("name", request.GetName()); err != nil {
		return params, err
	}
	if err := parseCandidate("candidate", request.GetCandidate()); err != nil {
		return params, err
	}
	if err := parseValue(request.GetValue()); err != nil {
		return params, err
	}
	params.heldParams, err = parseQueued(campaign{request})
	params.about.Value = new(request.GetValue())
	return params, err
}

func parseCandidate(field, value string) error {
	if value == "" {
		return invalid(field, value, "1 to 128 bytes")
	}
	return parseText(field, value, longestOwner)
}

func parseValue(value string) error {
	if len(value) > longestShown || !utf8.ValidString(value) {
		return invalid("value", strconv.Itoa(len(value))+" bytes", "at most 1024 bytes of UTF-8")
	}
	return nil
}

// Campaign is Acquire of the election's lock.
func (e *electionService) Campaign(
	request *electionv1.CampaignRequest, stream grpc.ServerStreamingServer[electionv1.CampaignResponse],
) error {
	keepalive := &electionv1.CampaignResponse{Event: &electionv1.CampaignResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, e.campaign)
}

func (e *electionService) campaign(request *electionv1.CampaignRequest, on line[*electionv1.CampaignResponse]) (holder, error) {
	params, err := parseCampaign(request)
	if err != nil {
		return nil, err
	}
	return takeLock(e.services, on, params, e.election(params.name), campaignWords(params.name))
}

// campaignWords are those of a candidate.
func campaignWords(of name) lockWords[*electionv1.CampaignResponse] {
	words := lockWords[*electionv1.CampaignResponse]{
		heldWords: campaignEvents, waits: kindElection,
		queued: func(turn recipes.Turn, _ time.Duration) (proto.Message, func() *electionv1.CampaignResponse) {
			candidacy := &electionv1.Candidacy{Position: int32(turn.Position), Leader: leaderOnWire(of, turn.Holders)}
			return candidacy, func() *electionv1.CampaignResponse {
				return &electionv1.CampaignResponse{Event: &electionv1.CampaignResponse_Candidate{Candidate: candidacy}}
			}
		},
		granted: func(holdID string, token int64) *electionv1.CampaignResponse {
			elected := &electionv1.Elected{HoldId: holdID, Ticket: &holdv1.Ticket{Lock: of.text, FencingToken: token}}
			return &electionv1.CampaignResponse{Event: &electionv1.CampaignResponse_Elected{Elected: elected}}
		},
	}
	words.requested = func(asked request) *electionv1.CampaignResponse {
		event := &electionv1.YieldRequested{To: asked.to, RequestedBy: asked.by, Reason: asked.reason, Grace: asked.grace()}
		return &electionv1.CampaignResponse{Event: &electionv1.CampaignResponse_YieldRequested{YieldRequested: event}}
	}
	return words
}

var campaignEvents = wordsOf[*electionv1.CampaignResponse]()

// leaderOnWire is the first of those that hold the election's lock; nil if nobody is known to.
func leaderOnWire(of name, holders []recipes.Contender) *electionv1.Leader {
	if len(holders) == 0 {
		return nil
	}
	leader := holders[0]
	return &electionv1.Leader{
		Candidate: leader.Owner, Value: shownBy(leader), Ticket: &holdv1.Ticket{Lock: of.text, FencingToken: leader.Token},
		Metadata: leader.Metadata, Identity: leader.Identity, Foreign: leader.Foreign, YieldRequested: leader.Revoked,
	}
}

func candidateOnWire(waiter recipes.Contender) *electionv1.Candidate {
	return &electionv1.Candidate{
		Candidate: waiter.Owner, Value: shownBy(waiter), Metadata: waiter.Metadata, Identity: waiter.Identity, Foreign: waiter.Foreign,
		Age: durationpb.New(waiter.Age),
	}
}

// shownBy is what a candidate shows; empty of other contenders.
func shownBy(contender recipes.Contender) string {
	if contender.Value == nil {
		return ""
	}
	return *contender.Value
}

func (e *electionService) Resign(ctx context.Context, request *electionv1.ResignRequest) (*electionv1.ResignResponse, error) {
	why, err := e.services.releaseHold(ctx, kindLock, request.GetHoldId())
	if err != nil {
		return nil, err
	}
	return &electionv1.ResignResponse{}, why
}

func (e *electionService) Proclaim(ctx context.Context, request *electionv1.ProclaimRequest) (*electionv1.ProclaimResponse, error) {
	if err := parseValue(request.GetValue()); err != nil {
		return nil, err
	}
	leader, err := e.services.guardOfTicket(ctx, "ticket", request.GetTicket())
	if err != nil {
		return nil, err
	}
	err = recipes.Proclaim(ctx, e.services.ensemble, leader.place, request.GetValue())
	if errors.Is(err, recipes.ErrNoNode) {
		err = e.services.guardLost(ctx, leader)
	}
	e.services.audit.wrote(caller.Of(ctx), "election", "proclaim", leader.lock.text, err, zap.Int("bytes", len(request.GetValue())))
	return &electionv1.ProclaimResponse{}, err
}

func (e *electionService) Transfer(ctx context.Context, request *electionv1.TransferRequest) (*electionv1.TransferResponse, error) {
	asked, err := parseName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	if err := parseCandidate("to", request.GetTo()); err != nil {
		return nil, err
	}
	if err := parseText("reason", request.GetReason(), longestReason); err != nil {
		return nil, err
	}
	grace, err := parseDuration("grace", request.GetGrace(), 0, longestGrace)
	if err != nil {
		return nil, err
	}
	from := caller.Of(ctx)
	if grace != nil && !caller.MayOperate(ctx) {
		return nil, ErrOperatorOnly
	}
	err = e.election(asked).Transfer(ctx, e.services.ensemble, recipes.Handover{
		To: request.GetTo(), By: from.Identity, Reason: request.GetReason(), Grace: grace, Patience: e.services.patience(),
	})
	e.services.audit.revoked(from, asked, request.GetReason(), grace, reached(err), err)
	return &electionv1.TransferResponse{}, inTheWay(err)
}

// patience is for how long a candidate's sidecar is left to act: until its session must have expired.
func (s *Services) patience() time.Duration {
	force := s.forceAfter(nil)
	return force.Timeout + force.Tick
}

// reached is how many were asked to let go.
func reached(err error) int {
	if err != nil {
		return 0
	}
	return 1
}

// inTheWay says which contender cannot do what is asked.
func inTheWay(err error) error {
	found, is := errors.AsType[*recipes.ForeignCandidate](err)
	if !is || found.Owner == "" {
		return err
	}
	facts := map[string]string{"candidate": found.Owner}
	return &detailedError{kind: recipes.ErrForeignCandidate, facts: facts, text: quoted(found.Owner) + " cannot step back"}
}

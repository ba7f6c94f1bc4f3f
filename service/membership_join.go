package service

import (
	"context"
	"errors"
	"maps"

	"google.golang.org/grpc"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// joinParams is a JoinRequest whose fields are in order.
type joinParams struct {
	heldParams

	group    name
	member   string
	conflict membershipv1.OnConflict
	guards   []*holdv1.Guard
}

func parseJoin(request *membershipv1.JoinRequest) (params joinParams, err error) {
	if params.group, params.member, err = parseMember(request); err != nil {
		return params, err
	}
	if params.heldParams, err = parseHeld(request); err != nil {
		return params, err
	}
	params.conflict, params.guards = request.GetOnConflict(), request.GetGuards()
	switch {
	case membershipv1.OnConflict_name[int32(params.conflict)] == "":
		return params, invalid("on_conflict", params.conflict.String(), "REJECT, WAIT or REPLACE")
	case params.rejects() && params.wait != nil:
		return params, invalid("wait_timeout", params.wait.String(), "omitted unless on_conflict is WAIT or REPLACE")
	}
	return params, nil
}

// rejects says whether a member that is there ends the join.
func (p joinParams) rejects() bool {
	return p.conflict != membershipv1.OnConflict_ON_CONFLICT_WAIT && p.conflict != membershipv1.OnConflict_ON_CONFLICT_REPLACE
}

// A memberStream is one Join stream. Its place is a member's node, for whose name it waits if it must.
type memberStream struct {
	*held[*recipes.Membership, *membershipv1.JoinResponse]

	params joinParams
	group  recipes.Group
	guards guards            // of the joining, once they are known
	member *member           // once joined
	known  map[string]string // the metadata that the caller knows of
}

func (m *membershipService) Join(
	request *membershipv1.JoinRequest, stream grpc.ServerStreamingServer[membershipv1.JoinResponse],
) error {
	return serve(request, stream, m.join)
}

func (m *membershipService) join(request *membershipv1.JoinRequest, on line[*membershipv1.JoinResponse]) (holder, error) {
	params, err := parseJoin(request)
	if err != nil {
		return nil, err
	}
	j := &memberStream{params: params, group: m.group(params.group)}
	j.held = newHeld(m.services, on, j.memberRecipe())
	return j.held, nil
}

func (j *memberStream) memberRecipe() heldRecipe[*recipes.Membership, *membershipv1.JoinResponse] {
	return heldRecipe[*recipes.Membership, *membershipv1.JoinResponse]{
		heldParams: j.params.heldParams, heldWords: joinWords, resource: memberResource(j.params.group, j.params.member), again: j.again,
		steps: j, early: true, removed: recipes.ErrRemoved,
		end: func(why error) { j.services.endMember(j.member, why) }, awaited: isAwaited,
	}
}

var joinWords = heldWords[*membershipv1.JoinResponse]{
	suspended: func(s *holdv1.Suspended) *membershipv1.JoinResponse {
		return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Suspended{Suspended: s}}
	},
	resumed: func(r *holdv1.Resumed) *membershipv1.JoinResponse {
		return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Resumed{Resumed: r}}
	},
}

// again waits for a member of the same lease that is leaving the group under this name, if it may wait.
func (j *memberStream) again(leaving bool) error {
	if j.params.rejects() || !leaving {
		return &detailedError{kind: recipes.ErrMemberExists, text: "it stands on the same lease"}
	}
	return nil
}

// awaitTurn makes the member, as soon as the name is free.
func (j *memberStream) awaitTurn(ctx context.Context) error {
	for {
		join := func(about recipes.About) (*recipes.Membership, error) { return j.join(ctx, about) }
		err := j.take(ctx, j.rejoinOr(first(j.rejoin), join))
		if err == nil {
			_, err = await(ctx, j.held, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, j.lease.session.Prove(ctx)
			})
			return err
		}
		if errors.Is(err, recipes.ErrGone) { // what was joined before the sidecar was started
			return recipes.ErrRemoved
		}
		if errors.Is(err, recipes.ErrMemberExists) && !j.params.rejects() {
			_, err = await(ctx, j.held, j.awaitName)
			err = j.outwait(ctx, err)
		}
		if err != nil {
			return orTooMuch(err)
		}
	}
}

// join makes the member. What guards it is looked for once it comes to that: who comes back to a member does not join again.
func (j *memberStream) join(ctx context.Context, about recipes.About) (*recipes.Membership, error) {
	if j.guards.services == nil {
		found, err := j.services.parseGuards(ctx, j.params.guards)
		if err != nil {
			return nil, err
		}
		j.guards = found
	}
	joined, err := j.group.Join(ctx, j.lease.session, j.params.member, about, j.guards.places()...)
	return joined, j.guards.meaning(ctx, err)
}

func (j *memberStream) rejoin(session recipes.Adopter, standing recipes.Standing, about recipes.About) (*recipes.Membership, error) {
	return j.group.Rejoin(session, standing, j.params.member, about)
}

// awaitName returns when the name may be free. What it asks of a member that is there is guarded as the joining is.
func (j *memberStream) awaitName(ctx context.Context) (struct{}, error) {
	ensemble := j.guards.over(j.services.ensemble)
	if j.params.conflict == membershipv1.OnConflict_ON_CONFLICT_WAIT {
		return struct{}{}, j.group.AwaitFree(ctx, ensemble, j.params.member)
	}
	_, err := j.group.Evict(ctx, ensemble, j.params.member, recipes.Eviction{
		Replace: true, By: j.caller.Identity, Reason: j.about().Owner, ForceAfter: j.services.forceAfter(nil),
	})
	return struct{}{}, j.guards.meaning(ctx, err)
}

// begin makes a member of the node. The first look is due at once.
func (j *memberStream) begin(context.Context) (*membershipv1.JoinResponse, nodeState) {
	j.member = j.services.beginMember(j.recipe.resource, j.lease, j.place, j.guards)
	j.known = j.about().Metadata
	joined := &membershipv1.Joined{Incarnation: j.place.Incarnation}
	return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Joined{Joined: joined}}, nodeState{changed: recipes.Given()}
}

// look asks what has become of the member's node.
func (j *memberStream) look(ctx context.Context) (nodeState, error) {
	standing, changed, err := j.place.Look(ctx)
	if errors.Is(err, recipes.ErrRemoved) {
		err = recipes.ErrGone
	}
	return nodeState{changed: changed, act: func() error { return j.react(standing) }}, err
}

// react acts on what a look has shown.
func (j *memberStream) react(standing recipes.MemberState) error {
	if standing.End != nil {
		return evicted(standing)
	}
	if !maps.Equal(standing.Metadata, j.known) {
		j.known = standing.Metadata
		j.tell(topicMetadata, func() *membershipv1.JoinResponse {
			updated := &membershipv1.Updated{Metadata: standing.Metadata}
			return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Updated{Updated: updated}}
		})
	}
	return nil
}

// isAwaited says whether others wait for a member's end, which locks nothing: somebody else who takes its name, or all callers of a
// sidecar that stops.
func isAwaited(why error) bool {
	return errors.Is(why, recipes.ErrReplaced) || errors.Is(why, recipes.ErrRemoved) || errors.Is(why, errHoldStopped)
}

// evicted says who has asked for the member's end.
func evicted(standing recipes.MemberState) error {
	text := "asked for by " + quoted(standing.By)
	if standing.Reason != "" {
		text += ": " + quoted(standing.Reason)
	}
	return &detailedError{kind: standing.End, facts: map[string]string{"by": standing.By, "reason": standing.Reason}, text: text}
}

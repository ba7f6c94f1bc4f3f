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

// joinWords are what the caller of a Join is told.
type joinWords[M any] struct {
	heldWords[M]

	joined  func(incarnation int64) M
	updated func(metadata map[string]string) M
}

// A joinRequest is one request to Join a group, or a set of items. Its place is a member's node, for whose name it waits if it must.
type joinRequest[M any] struct {
	*held[*recipes.Membership, M]

	words  joinWords[M]
	params joinParams
	group  recipes.Group
	guards guards            // of the joining, once they are known
	named  bool              // another member was, when it was last tried
	member *member           // once joined
	known  map[string]string // the metadata that the caller knows of
}

func (m *membershipService) Join(
	request *membershipv1.JoinRequest, stream grpc.ServerStreamingServer[membershipv1.JoinResponse],
) error {
	keepalive := &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, m.join)
}

func (m *membershipService) join(request *membershipv1.JoinRequest, on line[*membershipv1.JoinResponse]) (holder, error) {
	params, err := parseJoin(request)
	if err != nil {
		return nil, err
	}
	j := &joinRequest[*membershipv1.JoinResponse]{words: groupWords, params: params, group: m.group(params.group)}
	j.held = newHeld(m.services, on, j.memberRecipe(memberResource(params.group, params.member)))
	return j.held, nil
}

func (j *joinRequest[M]) memberRecipe(of resource) heldRecipe[*recipes.Membership, M] {
	return heldRecipe[*recipes.Membership, M]{
		heldParams: j.params.heldParams, heldWords: j.words.heldWords, resource: of, again: j.again,
		steps: j, rejoin: j, means: j.means, early: true, removed: recipes.ErrRemoved,
		end: func(why error) { j.services.endMember(j.member, why) }, awaited: isAwaited,
	}
}

// groupWords are those of a member of a group.
var groupWords = joinWords[*membershipv1.JoinResponse]{
	joined: func(incarnation int64) *membershipv1.JoinResponse {
		return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Joined{Joined: &membershipv1.Joined{Incarnation: incarnation}}}
	},
	updated: func(metadata map[string]string) *membershipv1.JoinResponse {
		return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Updated{Updated: &membershipv1.Updated{Metadata: metadata}}}
	},
	heldWords: wordsOf[*membershipv1.JoinResponse](),
}

// again waits for a member of the same lease that is leaving the group under this name, if it may wait.
func (j *joinRequest[M]) again(leaving bool) error {
	if j.params.rejects() || !leaving {
		return &detailedError{kind: recipes.ErrMemberExists, text: "it stands on the same lease"}
	}
	return nil
}

// join makes the member, as soon as the name is free. What guards it is looked for once it comes to that: who comes back to a member does not
// join again.
func (j *joinRequest[M]) join(ctx context.Context, about recipes.About) (*recipes.Membership, error) {
	if j.guards.services == nil {
		found, err := j.services.parseGuards(ctx, j.params.guards)
		if err != nil {
			return nil, err
		}
		j.guards = found
	}
	if j.named {
		if err := j.awaitName(ctx); err != nil {
			return nil, orTooMuch(err)
		}
		if ctx.Err() != nil { // the name is free as the waiting ends
			return nil, context.Cause(ctx)
		}
	}
	joined, err := j.group.Join(ctx, j.lease.session, j.params.member, about, j.guards.places()...)
	err = j.guards.meaning(ctx, err)
	if j.named = errors.Is(err, recipes.ErrMemberExists) && !j.params.rejects(); j.named {
		return nil, &notYet{changed: recipes.Given()}
	}
	return joined, orTooMuch(err)
}

// ask has the member certain to be its caller's.
func (j *joinRequest[M]) ask(ctx context.Context) (turn, error) {
	return turn{granted: true}, j.lease.session.Prove(ctx)
}

func (j *joinRequest[M]) rejoin(session recipes.Adopter, standing []recipes.Standing, about recipes.About) (*recipes.Membership, error) {
	return j.group.Rejoin(session, standing[0], j.params.member, about)
}

// means says what it means to a caller that the node of the member is gone.
func (j *joinRequest[M]) means(err error) error {
	if errors.Is(err, recipes.ErrGone) {
		return recipes.ErrRemoved
	}
	return err
}

// awaitName returns when the name may be free; a *notYet says when that may be. What it asks of a member that is there is guarded as the joining
// is.
func (j *joinRequest[M]) awaitName(ctx context.Context) (err error) {
	ensemble := j.guards.over(j.services.ensemble)
	if j.params.conflict == membershipv1.OnConflict_ON_CONFLICT_WAIT {
		var changed *recipes.Signal
		if changed, err = j.group.WatchFree(ctx, ensemble, j.params.member); err == nil && changed != nil {
			err = &notYet{changed: changed}
		}
	} else {
		_, err = j.group.Evict(ctx, ensemble, j.params.member, recipes.Eviction{
			Replace: true, By: j.caller.Identity, Reason: j.about().Owner, ForceAfter: j.services.forceAfter(nil),
		})
		err = j.guards.meaning(ctx, err)
	}
	if errors.Is(err, recipes.ErrUnreachable) {
		err = &notYet{pause: countdown}
	}
	return err
}

// begin makes a member of the node.
func (j *joinRequest[M]) begin(context.Context) (M, nodeState) {
	j.member = j.services.beginMember(j.recipe.resource, j.lease, j.place, j.guards)
	j.known = j.about().Metadata
	return j.words.joined(j.place.Incarnation), nodeState{}
}

// look asks what has become of the member's node.
func (j *joinRequest[M]) look(ctx context.Context) (nodeState, error) {
	standing, changed, err := j.place.Look(ctx)
	if errors.Is(err, recipes.ErrRemoved) {
		err = recipes.ErrGone
	}
	return nodeState{changed: changed, act: func() error { return j.react(standing) }}, err
}

// react acts on what a look has shown.
func (j *joinRequest[M]) react(standing recipes.MemberState) error {
	if standing.End != nil {
		return evicted(standing)
	}
	if j.words.updated != nil && !maps.Equal(standing.Metadata, j.known) {
		j.known = standing.Metadata
		j.tell(topicMetadata, func() M { return j.words.updated(standing.Metadata) })
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

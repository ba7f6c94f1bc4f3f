package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func shareResource(set name, member string) resource {
	return resource{kindAssignment, set.text + "/" + member}
}

// parseShare checks a JoinRequest of a set.
func parseShare(request *assignmentv1.JoinRequest) (params joinParams, capacity int, err error) {
	if params.group, err = parseSet(request); err != nil {
		return params, 0, err
	}
	if params.member, err = parseSegment("member", request.GetMember()); err != nil {
		return params, 0, err
	}
	if params.heldParams, err = parseQueued(request); err != nil {
		return params, 0, err
	}
	capacity = recipes.MaxSetItems
	if request.Capacity != nil {
		if capacity, err = parseCapacity(request.GetCapacity()); err != nil {
			return params, 0, err
		}
	}
	params.conflict = membershipv1.OnConflict_ON_CONFLICT_WAIT
	if params.once {
		params.conflict = membershipv1.OnConflict_ON_CONFLICT_REJECT
	}
	return params, capacity, nil
}

// A shareRequest is one request to Join a set. Its place is that of a member of the set's group, which hears of the plans.
type shareRequest struct {
	*joinRequest[*assignmentv1.JoinResponse]

	set      recipes.Assignment
	capacity int
	follow   context.CancelFunc // ends the hearing
	hearing  sync.WaitGroup
}

func (s *assignmentService) Join(
	request *assignmentv1.JoinRequest, stream grpc.ServerStreamingServer[assignmentv1.JoinResponse],
) error {
	keepalive := &assignmentv1.JoinResponse{Event: &assignmentv1.JoinResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, s.join)
}

func (s *assignmentService) join(request *assignmentv1.JoinRequest, on line[*assignmentv1.JoinResponse]) (holder, error) {
	params, capacity, err := parseShare(request)
	if err != nil {
		return nil, err
	}
	set := s.services.assignment(params.group)
	of := &shareRequest{set: set, capacity: capacity, follow: func() {}}
	of.joinRequest = &joinRequest[*assignmentv1.JoinResponse]{words: shareWords, params: params, group: set.Members()}
	recipe := of.memberRecipe(shareResource(params.group, params.member))
	recipe.steps = of
	leave := recipe.end
	recipe.end = func(why error) {
		of.follow()
		leave(why)
	}
	recipe.gone = of.hearing.Wait
	of.held = newHeld(s.services, on, recipe)
	return of.held, nil
}

// shareWords are those of a member of a set.
var shareWords = joinWords[*assignmentv1.JoinResponse]{
	joined: func(incarnation int64) *assignmentv1.JoinResponse {
		return &assignmentv1.JoinResponse{Event: &assignmentv1.JoinResponse_Joined{Joined: &assignmentv1.Joined{Incarnation: incarnation}}}
	},
	heldWords: wordsOf[*assignmentv1.JoinResponse](),
}

// join makes the member, if there is such a set, and room in it.
func (s *shareRequest) join(ctx context.Context, about recipes.About) (*recipes.Membership, error) {
	found, err := s.set.Size(ctx, s.services.ensemble)
	if errors.Is(err, recipes.ErrNoAssignment) { // perhaps the reader is late
		found, err = s.set.Get(ctx, s.services.ensemble)
	}
	switch {
	case err != nil:
		return nil, meaningOfSet(err, s.params.group.text)
	case len(found.Members)+found.Omitted >= recipes.MaxSetMembers:
		return nil, recipes.ErrDirectoryTooLarge
	}
	about.Metadata = recipes.WithCapacity(about.Metadata, s.capacity)
	return s.joinRequest.join(ctx, about)
}

// begin makes a member of the node, and has its caller hear of the plans once it was told that it has joined.
func (s *shareRequest) begin(ctx context.Context) (*assignmentv1.JoinResponse, nodeState) {
	announcement, first := s.joinRequest.begin(ctx)
	first.act = func() error {
		var following context.Context
		following, s.follow = context.WithCancel(s.over.ctx)
		plans := s.services.plans.watch(watchedName{s.params.group, s.caller.Identity})
		s.hearing.Go(func() { s.hear(following, plans) })
		return nil
	}
	return announcement, first
}

// hear tells the caller which items are its member's, whenever that has changed, until ctx ends. Without contact the last items go on to be its.
func (s *shareRequest) hear(ctx context.Context, plans *broadcast[watchedName, *recipes.AssignmentView]) {
	defer plans.leave()
	told, events := (*assignmentv1.Assigned)(nil), s.services.options.Events
	events.SharesChanged(1, 0)
	defer func() { events.SharesChanged(-1, -len(told.GetItems())) }()
	for {
		now, changed := plans.now()
		switch {
		case now.err != nil && !errors.Is(now.err, recipes.ErrUnreachable):
			s.over.end(meaningOfSet(now.err, s.params.group.text))
			s.isEnded()
			return
		case now.seen:
			before := len(told.GetItems())
			told = s.tellItems(now.view, told)
			events.SharesChanged(0, len(told.GetItems())-before)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// tellItems tells the caller its member's items if another plan or other items of the set make that worth while, and returns what is told.
func (s *shareRequest) tellItems(view *recipes.AssignmentView, before *assignmentv1.Assigned) *assignmentv1.Assigned {
	at, is := slices.BinarySearchFunc(view.Members, s.params.member, func(of *recipes.SetMember, member string) int {
		return strings.Compare(of.Name, member)
	})
	if !is || view.Members[at].Incarnation != s.place.Incarnation { // the view does not show the member yet, or does not any more
		return before
	}
	now := &assignmentv1.Assigned{
		Epoch: view.Epoch, Items: view.Members[at].Items, Members: int32(len(view.Members) + view.Omitted), Total: int32(view.Total()),
		Unassigned: int32(view.Unassigned),
	}
	if before != nil && (now.GetEpoch() < before.GetEpoch() ||
		now.GetEpoch() == before.GetEpoch() && now.GetTotal() == before.GetTotal() && slices.Equal(before.GetItems(), now.GetItems())) {
		return before
	}
	s.tell(topicMetadata, func() *assignmentv1.JoinResponse {
		return &assignmentv1.JoinResponse{Event: &assignmentv1.JoinResponse_Assigned{Assigned: now}}
	})
	return now
}

// planning looks at a set for its members of one caller, and makes the plans that are due. What others have to do with the set ends no watching
// that goes on, however many members it gets.
func (s *Services) planning(_ context.Context, of watchedName) looking[*recipes.AssignmentView] {
	planner, begun := recipes.Planner{Assignment: s.assignment(of.name)}, false
	counted := countedStore{s.ensemble, s.options.Events.PlanWritten}
	planner.Own = func(member string) bool {
		return s.members.find(shareResource(of.name, member), caller.Caller{Identity: of.identity}, nil) != nil
	}
	planner.Failed = func(err error) {
		s.options.Log.Warn("the plan of a set cannot be written", zap.String("set", of.name.text), zap.Error(err))
	}
	return func(ctx context.Context) (*recipes.AssignmentView, recipes.Changes, error) {
		view, changes, err := planner.Look(ctx, counted)
		if err != nil {
			return nil, nil, err
		}
		if err := s.watched.note(ctx, of.identity, len(changes)); err != nil && !begun {
			return nil, nil, err
		}
		begun = true
		return &view, changes, nil
	}
}

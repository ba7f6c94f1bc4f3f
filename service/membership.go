package service

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// membershipService answers sidekeeper.membership.v1.MembershipService.
type membershipService struct {
	membershipv1.UnsafeMembershipServiceServer

	services *Services
}

func (m *membershipService) group(n name) recipes.Group { return m.services.groupDirectory().group(n) }

func (m *membershipService) Get(ctx context.Context, request *membershipv1.GetRequest) (*membershipv1.GetResponse, error) {
	asked, err := parseName("group", request.GetGroup())
	if err != nil {
		return nil, err
	}
	view, err := m.group(asked).View(ctx, m.services.ensemble)
	if err != nil {
		return nil, err
	}
	return &membershipv1.GetResponse{View: groupViewOnWire(asked, view)}, nil
}

func (m *membershipService) Create(
	ctx context.Context, request *membershipv1.CreateRequest,
) (*membershipv1.CreateResponse, error) {
	asked, err := parseName("group", request.GetGroup())
	if err != nil {
		return nil, err
	}
	err = m.group(asked).Make(ctx, m.services.ensemble)
	m.services.audit.wrote(caller.Of(ctx), "group", "create", asked.text, err)
	if errors.Is(err, recipes.ErrGroupNotEmpty) {
		return nil, &detailedError{kind: err, text: "only an empty group can be made to stay"}
	}
	return &membershipv1.CreateResponse{}, err
}

func (m *membershipService) Delete(
	ctx context.Context, request *membershipv1.DeleteRequest,
) (*membershipv1.DeleteResponse, error) {
	asked, err := parseName("group", request.GetGroup())
	if err != nil {
		return nil, err
	}
	order, err := m.parseEviction(ctx, request)
	if err != nil {
		return nil, err
	}
	if !request.GetForce() {
		err := m.group(asked).Delete(ctx, m.services.ensemble)
		m.services.audit.wrote(caller.Of(ctx), "group", "delete", asked.text, err)
		return &membershipv1.DeleteResponse{}, err
	}
	forced, err := m.group(asked).Dissolve(ctx, m.services.ensemble, order)
	m.services.audit.removed(caller.Of(ctx), "group", asked.text, order.Reason, err)
	return &membershipv1.DeleteResponse{Forced: int32(forced)}, err
}

// parseEviction reads how the members shall be removed, if they shall.
func (m *membershipService) parseEviction(ctx context.Context, request *membershipv1.DeleteRequest) (recipes.Eviction, error) {
	from := caller.Of(ctx)
	if request.GetForce() && !caller.MayOperate(ctx) {
		return recipes.Eviction{}, ErrOperatorOnly
	}
	parseReason := parseText
	if request.GetForce() {
		parseReason = parseRequired
	}
	if err := parseReason("reason", request.GetReason(), longestReason); err != nil {
		return recipes.Eviction{}, err
	}
	after, err := parseDuration("force_after", request.GetForceAfter(), 0, longestGrace)
	switch {
	case err != nil:
		return recipes.Eviction{}, err
	case !request.GetForce() && request.GetReason() != "":
		return recipes.Eviction{}, invalid("reason", request.GetReason(), "omitted unless force is set")
	case !request.GetForce() && after != nil:
		return recipes.Eviction{}, invalid("force_after", after.String(), "omitted unless force is set")
	}
	return recipes.Eviction{By: from.Identity, Reason: request.GetReason(), ForceAfter: m.services.forceAfter(after)}, nil
}

func (m *membershipService) List(
	ctx context.Context, request *membershipv1.ListRequest,
) (response *membershipv1.ListResponse, err error) {
	response = &membershipv1.ListResponse{}
	response.Groups, response.NextPageToken, err = listPage(ctx, m.services.ensemble, m.services.groupDirectory(), request, m.listed)
	return response, err
}

// listed leaves out groups without members, which will vanish, unless they were made to stay.
func (m *membershipService) listed(ctx context.Context, found name) (*membershipv1.Group, error) {
	members, permanent, err := m.group(found).Size(ctx, m.services.ensemble)
	if errors.Is(err, recipes.ErrNoNode) || err == nil && members == 0 && !permanent {
		return nil, nil
	}
	return &membershipv1.Group{Group: found.text, Members: int32(members), Permanent: permanent}, err
}

type memberRequest interface {
	GetGroup() string
	GetMember() string
}

func parseMember(request memberRequest) (group name, member string, err error) {
	if group, err = parseName("group", request.GetGroup()); err != nil {
		return name{}, "", err
	}
	member, err = parseSegment("member", request.GetMember())
	return group, member, err
}

func memberResource(group name, member string) resource {
	return resource{kindMember, group.text + "/" + member}
}

func (m *membershipService) Update(
	ctx context.Context, request *membershipv1.UpdateRequest,
) (*membershipv1.UpdateResponse, error) {
	group, named, err := parseMember(request)
	if err != nil {
		return nil, err
	}
	about, err := parseAbout("", request.GetMetadata())
	if err != nil {
		return nil, err
	}
	from := caller.Of(ctx)
	var with *lease
	if request.GetLeaseId() != "" {
		if with, err = m.services.leases.find(ctx, request.GetLeaseId()); err != nil {
			return nil, err
		}
	}
	found := m.services.members.find(memberResource(group, named), from, with)
	if found == nil {
		return nil, recipes.ErrNoMember
	}
	under, err := m.services.parseGuards(ctx, request.GetGuards())
	if err != nil {
		return nil, err
	}
	return found.update(ctx, under, func(map[string]string) map[string]string { return about.Metadata })
}

// orTooMuch says which field is to blame if a member's node would be too large: what is within the rule for metadata may not
// be any more as JSON, where some characters take six bytes.
func orTooMuch(err error) error {
	if errors.Is(err, recipes.ErrTooLarge) {
		return invalid("metadata", "longer", "at most 8 KiB as JSON, escapes and all")
	}
	return err
}

// A member is one that has joined through this sidecar, until its stream ends.
type member struct {
	resource   resource
	lease      *lease
	membership *recipes.Membership
	joined     time.Time
}

// update stores other metadata, made of those that it has said before. An update that no caller waits for any more goes on.
func (m *member) update(
	ctx context.Context, under guards, of func(said map[string]string) map[string]string,
) (*membershipv1.UpdateResponse, error) {
	updating := run(func() (struct{}, error) {
		return struct{}{}, m.membership.Update(ctx, of(m.membership.Metadata()), under.places()...)
	})
	caller.AfterStatus(ctx, func() { <-updating.over.Done() })
	select {
	case <-updating.over.Done():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	_, err := updating.wait()
	err = under.meaning(ctx, err)
	under.services.audit.wrote(caller.Of(ctx), m.resource.kind, "update", m.resource.name, err, under.field())
	if lost := m.lease.lost(); err != nil && lost != nil {
		return nil, lost
	}
	if err != nil {
		return nil, orTooMuch(err)
	}
	return &membershipv1.UpdateResponse{Incarnation: m.membership.Incarnation}, nil
}

// A memberList has the members that have joined through this sidecar.
type memberList struct {
	mu      sync.Mutex
	members map[resource][]*member // more than one if a lease was lost and its stream has not ended yet
}

func (r *memberList) add(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[m.resource] = append(r.members[m.resource], m)
}

func (r *memberList) remove(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.members[m.resource], func(other *member) bool { return other == m })
	if r.members[m.resource] = left; len(left) == 0 {
		delete(r.members, m.resource)
	}
}

// find returns the caller's member, if with is nil through whichever lease; nil if it has none. The newest counts.
func (r *memberList) find(of resource, from caller.Caller, with *lease) *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range slices.Backward(r.members[of]) {
		if m.lease.identity == from.Identity && (with == nil || m.lease == with) {
			return m
		}
	}
	return nil
}

// beginMember makes a member of a membership.
func (s *Services) beginMember(of resource, on *lease, membership *recipes.Membership, under guards) *member {
	made := &member{resource: of, lease: on, membership: membership, joined: time.Now()}
	on.has([]resource{of}, membership.Incarnation)
	s.members.add(made)
	s.options.Events.MemberJoined()
	s.audit.joined(made, under)
	return made
}

// endMember is the end of a member as far as its caller is concerned; why is nil if it left.
func (s *Services) endMember(ended *member, why error) {
	s.members.remove(ended)
	reason := "LEFT"
	if why != nil && !errors.Is(why, context.Canceled) {
		reason = ReasonOf(why)
		s.options.Log.Info("member lost", zap.String("name", ended.resource.name), zap.String(leaseWord, ended.lease.logID),
			zap.Int64("incarnation", ended.membership.Incarnation), zap.String("reason", reason))
	}
	s.options.Events.MemberEnded(reason, time.Since(ended.joined))
	s.audit.left(ended, reason)
}

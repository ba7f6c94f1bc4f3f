package service

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// membershipService answers sidekeeper.membership.v1.MembershipService.
type membershipService struct {
	membershipv1.UnsafeMembershipServiceServer

	services *Services
}

func (m *membershipService) group(n name) recipes.Group { return m.services.groupDirectory().group(n) }

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
	from := callerOf(ctx)
	var with *lease
	if request.GetLeaseId() != "" {
		if with, err = m.services.leases.find(from, request.GetLeaseId()); err != nil {
			return nil, err
		}
	}
	found := m.services.members.find(memberResource(group, named), from, with)
	if found == nil {
		return nil, recipes.ErrNoMember
	}
	return found.update(ctx, about.Metadata)
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

// update stores the metadata. An update that nobody waits for any more goes on.
func (m *member) update(ctx context.Context, said map[string]string) (*membershipv1.UpdateResponse, error) {
	updating := run(func() (struct{}, error) { return struct{}{}, m.membership.Update(ctx, said) })
	afterStatus(ctx, func() { <-updating.done })
	select {
	case <-updating.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	_, err := updating.wait()
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
func (r *memberList) find(of resource, from caller, with *lease) *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range slices.Backward(r.members[of]) {
		if m.lease.identity == from.identity && (with == nil || m.lease == with) {
			return m
		}
	}
	return nil
}

// beginMember makes a member of a membership.
func (s *Services) beginMember(of resource, on *lease, membership *recipes.Membership) *member {
	made := &member{resource: of, lease: on, membership: membership, joined: time.Now()}
	on.has(of, membership.Incarnation)
	s.members.add(made)
	s.options.Events.MemberJoined()
	return made
}

// endMember is the end of a member as far as its caller is concerned; why is nil if it left.
func (s *Services) endMember(ended *member, why error) {
	s.members.remove(ended)
	reason := "LEFT"
	if why != nil && !errors.Is(why, context.Canceled) {
		reason = reasonOf(why)
		s.options.Log.Info("member lost", zap.String("name", ended.resource.name), zap.String(leaseWord, ended.lease.logID),
			zap.Int64("incarnation", ended.membership.Incarnation), zap.String("reason", reason))
	}
	s.options.Events.MemberEnded(reason, time.Since(ended.joined))
}

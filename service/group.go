package service

import (
	"context"
	"errors"
	"slices"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

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
	if errors.Is(err, recipes.ErrGroupNotEmpty) {
		return nil, &fault{kind: err, text: "only an empty group can be made to stay"}
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
	order, err := m.parseOusting(ctx, request)
	if err != nil {
		return nil, err
	}
	if !request.GetForce() {
		return &membershipv1.DeleteResponse{}, m.group(asked).Delete(ctx, m.services.ensemble)
	}
	forced, err := m.group(asked).Dissolve(ctx, m.services.ensemble, order)
	m.services.audit.removed(callerOf(ctx), "group", asked.text, order.Reason, err)
	return &membershipv1.DeleteResponse{Forced: int32(forced)}, err
}

// parseOusting reads how the members shall be removed, if they shall.
func (m *membershipService) parseOusting(ctx context.Context, request *membershipv1.DeleteRequest) (recipes.Eviction, error) {
	from := callerOf(ctx)
	if request.GetForce() && !mayOperate(ctx) {
		return recipes.Eviction{}, errOperatorOnly
	}
	if err := parseText("reason", request.GetReason(), longestReason); err != nil {
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
	return recipes.Eviction{By: from.identity, Reason: request.GetReason(), ForceAfter: m.services.patience(after)}, nil
}

func (m *membershipService) List(ctx context.Context, request *membershipv1.ListRequest) (*membershipv1.ListResponse, error) {
	page, err := parsePage(request)
	if err != nil {
		return nil, err
	}
	prefix := request.GetPrefix()
	if prefix != "" {
		if _, err := parseName("prefix", prefix); err != nil {
			return nil, err
		}
	}
	names, err := m.services.groupDirectory().names(ctx, m.services.ensemble)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n <= page.after || !(name{n}).under(prefix) })
	slices.Sort(names)
	return m.listPage(ctx, names, page.size)
}

// listPage looks at the directories of names, in order, until a page is full. One without members will vanish, unless it
// was made to stay.
func (m *membershipService) listPage(ctx context.Context, names []string, size int) (*membershipv1.ListResponse, error) {
	response := &membershipv1.ListResponse{}
	for i, text := range names {
		if len(response.GetGroups()) == size || i == mostScanned {
			response.NextPageToken = nextToken(names[i-1])
			break
		}
		members, permanent, err := m.group(name{text}).Size(ctx, m.services.ensemble)
		switch {
		case errors.Is(err, recipes.ErrNoNode), err == nil && members == 0 && !permanent:
		case err != nil:
			return nil, err
		default:
			found := &membershipv1.Group{Group: text, Members: int32(members), Permanent: permanent}
			response.Groups = append(response.Groups, found)
		}
	}
	return response, nil
}

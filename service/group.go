package service

import (
	"context"
	"errors"

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
func (m *membershipService) parseOusting(ctx context.Context, request *membershipv1.DeleteRequest) (recipes.Ousting, error) {
	from := callerOf(ctx)
	if request.GetForce() && !mayOperate(ctx) {
		return recipes.Ousting{}, errOperatorOnly
	}
	if err := parseText("reason", request.GetReason(), longestReason); err != nil {
		return recipes.Ousting{}, err
	}
	after, err := parseDuration("force_after", request.GetForceAfter(), 0, longestGrace)
	switch {
	case err != nil:
		return recipes.Ousting{}, err
	case !request.GetForce() && request.GetReason() != "":
		return recipes.Ousting{}, invalid("reason", request.GetReason(), "omitted unless force is set")
	case !request.GetForce() && after != nil:
		return recipes.Ousting{}, invalid("force_after", after.String(), "omitted unless force is set")
	}
	return recipes.Ousting{By: from.identity, Reason: request.GetReason(), Patience: m.services.patience(after)}, nil
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

package service

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// semaphoreService answers sidekeeper.semaphore.v1.SemaphoreService.
type semaphoreService struct {
	semaphorev1.UnsafeSemaphoreServiceServer

	services *Services
}

func (d directory) semaphore(n name) recipes.Semaphore { return recipes.Semaphore{Path: d.flat(n)} }

func (m *semaphoreService) semaphore(n name) recipes.Semaphore {
	return m.services.semaphoreDirectory().semaphore(n)
}

// parseSemaphore checks a semaphore's name: it is not that of another one's limit or numbers.
func parseSemaphore(value string) (name, error) {
	for _, suffix := range []string{recipes.LimitSuffix, recipes.NumbersSuffix} {
		if strings.HasSuffix(value, suffix) {
			return name{}, invalid("name", value, "no name of a semaphore ends in "+suffix)
		}
	}
	return parseName("name", value)
}

func parseLimit(value int32) (int, error) {
	if value < 1 || value > recipes.MaxLimit {
		return 0, invalid("limit", fmt.Sprint(value), fmt.Sprintf("from 1 to %d", recipes.MaxLimit))
	}
	return int(value), nil
}

func (m *semaphoreService) Create(ctx context.Context, request *semaphorev1.CreateRequest) (*semaphorev1.CreateResponse, error) {
	asked, err := parseSemaphore(request.GetName())
	if err != nil {
		return nil, err
	}
	limit, err := parseLimit(request.GetLimit())
	if err != nil {
		return nil, err
	}
	err = m.semaphore(asked).Create(ctx, m.services.ensemble, limit)
	m.services.audit.wrote(caller.Of(ctx), kindSemaphore, "create", asked.text, err)
	return &semaphorev1.CreateResponse{}, err
}

func (m *semaphoreService) Resize(ctx context.Context, request *semaphorev1.ResizeRequest) (*semaphorev1.ResizeResponse, error) {
	asked, err := parseSemaphore(request.GetName())
	if err != nil {
		return nil, err
	}
	limit, err := parseLimit(request.GetLimit())
	if err != nil {
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
	reached, err := m.semaphore(asked).Resize(ctx, m.services.ensemble, limit, from.Identity, request.GetReason(), grace)
	m.services.audit.wrote(from, kindSemaphore, "resize", asked.text, err)
	if err != nil {
		return nil, err
	}
	if reached > 0 {
		m.services.audit.revoked(from, asked, request.GetReason(), grace, reached, err)
	}
	return &semaphorev1.ResizeResponse{Asked: int32(reached)}, nil
}

func (m *semaphoreService) Check(ctx context.Context, request *semaphorev1.CheckRequest) (*semaphorev1.CheckResponse, error) {
	holds, err := checkEach(ctx, request.GetHoldIds(), m.checked)
	return &semaphorev1.CheckResponse{Holds: holds}, err
}

func (m *semaphoreService) checked(ctx context.Context, id string) (*semaphorev1.CheckedHold, error) {
	token, validFor, reason, err := m.services.checkHold(ctx, kindSemaphore, id)
	if err != nil {
		return nil, err
	}
	return &semaphorev1.CheckedHold{HoldId: id, ValidFor: durationpb.New(validFor), Token: token, Reason: reason}, nil
}

func (m *semaphoreService) Release(ctx context.Context, request *semaphorev1.ReleaseRequest) (*semaphorev1.ReleaseResponse, error) {
	why, err := m.services.releaseHold(ctx, kindSemaphore, request.GetHoldId())
	if err != nil {
		return nil, err
	}
	return &semaphorev1.ReleaseResponse{}, why
}

func (m *semaphoreService) List(
	ctx context.Context, request *semaphorev1.ListRequest,
) (response *semaphorev1.ListResponse, err error) {
	response = &semaphorev1.ListResponse{}
	response.Semaphores, response.NextPageToken, err = listPage(ctx, m.services.ensemble, m.services.semaphoreDirectory(), request, m.listed)
	return response, err
}

// listed takes each semaphore for its limit's node, which is there whether anybody has permits or not.
func (m *semaphoreService) listed(ctx context.Context, found name) (*semaphorev1.Semaphore, error) {
	text, isLimit := strings.CutSuffix(found.text, recipes.LimitSuffix)
	if !isLimit || BrokenNameRule(text) != "" {
		return nil, nil
	}
	limit, err := m.semaphore(name{text}).Limit(ctx, m.services.ensemble)
	if errors.Is(err, recipes.ErrNoSemaphore) || errors.Is(err, recipes.ErrMalformedLimit) {
		return nil, nil
	}
	return &semaphorev1.Semaphore{Name: text, Limit: int32(limit)}, err
}

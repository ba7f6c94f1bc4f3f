package service

import (
	"context"
	"time"

	"google.golang.org/grpc"

	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
)

// Faults are what an ensemble for development and tests can be made to do.
type Faults interface {
	// Suspend has the ensemble answer nobody for that long, counted from now; 0 ends it.
	Suspend(duration time.Duration)
	// Expire has the ensemble tell the session that it has expired. What the session owns is gone when it is closed.
	Expire(session Session)
	// DelayGrants has sessions take that much longer to prove themselves for a grant.
	DelayGrants(delay time.Duration)
}

const longestFault = 24 * time.Hour

// Dev is Services with a DevService beside them.
type Dev struct {
	*Services
	Faults Faults
}

// Register implements Handlers.
func (d Dev) Register(registrar grpc.ServiceRegistrar) {
	d.Services.Register(registrar)
	devv1.RegisterDevServiceServer(registrar, &devService{services: d.Services, faults: d.Faults})
}

// devService answers sidekeeper.dev.v1.DevService.
type devService struct {
	devv1.UnsafeDevServiceServer

	services *Services
	faults   Faults
}

func (d *devService) Suspend(_ context.Context, request *devv1.SuspendRequest) (*devv1.SuspendResponse, error) {
	duration, err := parseDuration("duration", request.GetDuration(), 0, longestFault)
	if err != nil {
		return nil, err
	}
	if duration == nil {
		return nil, missing("duration")
	}
	d.faults.Suspend(*duration)
	return &devv1.SuspendResponse{}, nil
}

func (d *devService) DelayGrants(_ context.Context, request *devv1.DelayGrantsRequest) (*devv1.DelayGrantsResponse, error) {
	delay, err := parseDuration("delay", request.GetDelay(), 0, longestFault)
	if err != nil {
		return nil, err
	}
	if delay == nil {
		return nil, missing("delay")
	}
	d.faults.DelayGrants(*delay)
	return &devv1.DelayGrantsResponse{}, nil
}

func (d *devService) ExpireLease(ctx context.Context, request *devv1.ExpireLeaseRequest) (*devv1.ExpireLeaseResponse, error) {
	named, err := d.named(ctx, request)
	if err != nil {
		return nil, err
	}
	for _, lease := range named {
		d.faults.Expire(lease.session)
	}
	for _, lease := range named {
		select {
		case <-lease.gone:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &devv1.ExpireLeaseResponse{Expired: int32(len(named))}, nil
}

// named finds the leases that a request is about.
func (d *devService) named(ctx context.Context, request *devv1.ExpireLeaseRequest) ([]*lease, error) {
	switch which := request.GetLeases().(type) {
	case *devv1.ExpireLeaseRequest_LeaseId:
		found, err := d.services.leases.find(ctx, which.LeaseId)
		return []*lease{found}, err
	case *devv1.ExpireLeaseRequest_Lock:
		return d.holders(which.Lock)
	case *devv1.ExpireLeaseRequest_All:
		if which.All {
			return d.services.leases.all(), nil
		}
	}
	return nil, missing("leases")
}

// holders finds the leases that hold a lock.
func (d *devService) holders(lock string) ([]*lease, error) {
	held, err := parseName("lock", lock)
	if err != nil {
		return nil, err
	}
	var holders []*lease
	for _, lease := range d.services.leases.all() {
		if lease.possessions()[resource{kindLock, held.text}].held {
			holders = append(holders, lease)
		}
	}
	if len(holders) == 0 {
		return nil, &detailedError{kind: errHoldNotFound, text: "no lease of this sidecar holds " + lock}
	}
	return holders, nil
}

func missing(field string) error { return invalid(field, "", "required") }

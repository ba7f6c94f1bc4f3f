package service

import (
	"cmp"
	"context"

	"google.golang.org/grpc"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// barrierService answers sidekeeper.barrier.v1.BarrierService.
type barrierService struct {
	barrierv1.UnsafeBarrierServiceServer

	services *Services
}

func (b *barrierService) barrier(n name) recipes.Barrier {
	return recipes.Barrier{Path: b.directory().flat(n)}
}

func (b *barrierService) directory() directory {
	return directory{root: b.services.options.BarrierRoot}
}

func (b *barrierService) Set(ctx context.Context, request *barrierv1.SetRequest) (*barrierv1.SetResponse, error) {
	return &barrierv1.SetResponse{}, b.write(ctx, "set", request.GetName(), recipes.Barrier.Set)
}

func (b *barrierService) Remove(ctx context.Context, request *barrierv1.RemoveRequest) (*barrierv1.RemoveResponse, error) {
	return &barrierv1.RemoveResponse{}, b.write(ctx, "remove", request.GetName(), recipes.Barrier.Remove)
}

func (b *barrierService) write(
	ctx context.Context, action, named string, do func(recipes.Barrier, context.Context, recipes.Store) error,
) error {
	asked, err := parseName("name", named)
	if err != nil {
		return err
	}
	err = do(b.barrier(asked), ctx, b.services.ensemble)
	b.services.audit.wrote(caller.Of(ctx), kindBarrier, action, asked.text, err)
	return err
}

func (b *barrierService) Wait(request *barrierv1.WaitRequest, stream grpc.ServerStreamingServer[barrierv1.WaitResponse]) error {
	asked, err := parseName("name", request.GetName())
	if err != nil {
		return err
	}
	keepalive := &barrierv1.WaitResponse{Keepalive: alive}
	return holdNothing(b.services, request, stream, keepalive,
		func(ctx context.Context, tell func(*barrierv1.WaitResponse)) (*barrierv1.WaitResponse, error) {
			return nil, b.barrier(asked).Await(ctx, b.services.ensemble, func() { tell(&barrierv1.WaitResponse{}) })
		})
}

func (b *barrierService) List(ctx context.Context, request *barrierv1.ListRequest) (response *barrierv1.ListResponse, err error) {
	response = &barrierv1.ListResponse{}
	response.Barriers, response.NextPageToken, err = listPage(ctx, b.services.ensemble, b.directory(), request, b.listed)
	return response, err
}

func (b *barrierService) listed(ctx context.Context, found name) (*barrierv1.Barrier, error) {
	state, err := b.barrier(found).State(ctx, b.services.ensemble)
	if err != nil || state == (recipes.BarrierState{}) {
		return nil, err
	}
	return &barrierv1.Barrier{Name: found.text, Set: state.Set, Present: int32(state.Present), Inside: int32(state.Inside)}, nil
}

// Leave has the entry last until it is the caller's turn to leave, and then waits for the others of its round, without it.
func (b *barrierService) Leave(ctx context.Context, request *barrierv1.LeaveRequest) (*barrierv1.LeaveResponse, error) {
	found, ended, err := b.services.findHold(ctx, kindBarrier, "hold_id", request.GetHoldId())
	if err != nil {
		return nil, err
	}
	if ended == nil {
		if err := b.awaitTurn(ctx, found); err != nil {
			return nil, err
		}
		ended = &tombstone{round: found.round}
	}
	why, err := b.services.releaseHold(ctx, kindBarrier, request.GetHoldId())
	if err != nil || why != nil {
		return nil, cmp.Or(err, why)
	}
	ctx, release := b.services.drain.bound(ctx)
	defer release()
	return &barrierv1.LeaveResponse{}, ended.round.AwaitOthers(ctx, b.services.ensemble)
}

// awaitTurn returns when it is the turn of an entry to end, or it has ended.
func (b *barrierService) awaitTurn(ctx context.Context, entry *hold) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	turn := run(func() (struct{}, error) { return struct{}{}, entry.round.AwaitTurn(ctx, b.services.ensemble) })
	select {
	case <-turn.over.Done():
		return turn.err
	case <-entry.gone:
		cancel()
		<-turn.over.Done()
		return nil
	}
}

package service

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func (m *semaphoreService) Get(ctx context.Context, request *semaphorev1.GetRequest) (*semaphorev1.GetResponse, error) {
	asked, err := parseSemaphore(request.GetName())
	if err != nil {
		return nil, err
	}
	view, err := m.semaphore(asked).View(ctx, m.services.ensemble)
	if err != nil {
		return nil, err
	}
	return &semaphorev1.GetResponse{View: semaphoreOnWire(asked, view)}, nil
}

// A semaphoreView is a view of a semaphore that all its watchers share. It is not modified.
type semaphoreView struct {
	recipes.SemaphoreView

	at      time.Time
	ageless *semaphorev1.View // tells this one apart from others
}

// lookAtSemaphore reads a semaphore for its broadcast.
func (s *Services) lookAtSemaphore(ctx context.Context, of name) (*semaphoreView, recipes.Changes, error) {
	view, changes, err := s.semaphoreDirectory().semaphore(of).WatchView(ctx, s.ensemble)
	if err != nil {
		return nil, nil, err
	}
	seen := &semaphoreView{SemaphoreView: view, at: time.Now(), ageless: semaphoreOnWire(of, view)}
	for _, contender := range slices.Concat(seen.ageless.GetHolders(), seen.ageless.GetWaiters()) {
		contender.Age = nil
	}
	return seen, changes, nil
}

// message is the view as it is now, with everybody's age.
func (v *semaphoreView) message(of name) *semaphorev1.View {
	onWire := semaphoreOnWire(of, v.SemaphoreView)
	for _, contender := range slices.Concat(onWire.GetHolders(), onWire.GetWaiters()) {
		contender.Age = durationpb.New(contender.GetAge().AsDuration() + time.Since(v.at))
	}
	return onWire
}

func (m *semaphoreService) Watch(
	request *semaphorev1.WatchRequest, stream grpc.ServerStreamingServer[semaphorev1.WatchResponse],
) error {
	asked, err := parseSemaphore(request.GetName())
	if err != nil {
		return err
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	box, shared := newOutbox(stream.Send), m.services.permits.watch(asked)
	caller.AfterStatus(stream.Context(), func() {
		shared.leave()
		box.wait()
	})
	var told *semaphorev1.View // without ages; nil before the first
	return relay(stream.Context(), shared, m.services.drain, box, func(now shown[*semaphoreView]) error {
		switch {
		case now.stale && told == nil:
			return recipes.ErrUnreachable // others are watching, who have seen more than this caller may be told
		case !proto.Equal(now.view.ageless, told):
			told = now.view.ageless
			box.put(topicPlace, func() (*semaphorev1.WatchResponse, bool) {
				return &semaphorev1.WatchResponse{View: now.view.message(asked)}, true
			})
		}
		return nil
	})
}

func semaphoreOnWire(of name, view recipes.SemaphoreView) *semaphorev1.View {
	holder := func(h recipes.PermitHolder) *semaphorev1.Contender {
		made := waiterForPermits(h.Contender)
		made.Permits, made.Token = int32(h.Permits), h.Token
		return made
	}
	return &semaphorev1.View{
		Name: of.text, Limit: int32(view.Limit), Held: int32(view.Taken), Holders: each(view.Holders, holder),
		Waiters: each(view.Waiters, waiterForPermits), WaitersOmitted: int32(view.Omitted),
	}
}

func waiterForPermits(contender recipes.Contender) *semaphorev1.Contender {
	return &semaphorev1.Contender{
		Identity: contender.Identity, Owner: contender.Owner, Metadata: contender.Metadata, Age: durationpb.New(contender.Age),
		Foreign: contender.Foreign, RevocationRequested: contender.Revoked,
	}
}

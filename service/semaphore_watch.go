package service

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
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
	return &semaphoreView{SemaphoreView: view, at: time.Now(), ageless: ageless(semaphoreOnWire(of, view))}, changes, nil
}

// message is the view as it is now, with everybody's age.
func (v *semaphoreView) message(of name) *semaphorev1.View {
	return aged(semaphoreOnWire(of, v.SemaphoreView), time.Since(v.at))
}

func (m *semaphoreService) Watch(
	request *semaphorev1.WatchRequest, stream grpc.ServerStreamingServer[semaphorev1.WatchResponse],
) error {
	asked, err := parseSemaphore(request.GetName())
	if err != nil {
		return err
	}
	box, of, err := openWatch(request, stream, &semaphorev1.WatchResponse{Keepalive: alive})
	if err != nil {
		return err
	}
	var told toldView
	return showOn(stream, m.services.permits.watch(asked), m.services.drain, of, func(now shown[*semaphoreView]) error {
		if told.isNews(now.view.ageless, now.stale) {
			box.Put(topicPlace, func() (*semaphorev1.WatchResponse, bool) {
				return &semaphorev1.WatchResponse{View: now.view.message(asked), Stale: now.stale}, true
			})
		}
		return nil
	})
}

func semaphoreOnWire(of name, view recipes.SemaphoreView) *semaphorev1.View {
	holder := func(h recipes.PermitHolder) *holdv1.Contender {
		onWire := contenderOnWire(h.Contender)
		onWire.Permits, onWire.Token = new(int32(h.Permits)), h.Token
		if h.Number != nil {
			onWire.Number = new(int32(*h.Number))
		}
		return onWire
	}
	waiter := func(w recipes.Contender) *holdv1.Contender {
		onWire := contenderOnWire(w)
		onWire.Permits = new(int32(0))
		return onWire
	}
	quarantine := func(q recipes.Quarantine) *semaphorev1.Quarantine {
		onWire := &semaphorev1.Quarantine{Number: int32(q.Number)}
		if !q.Until.IsZero() {
			onWire.Until = timestamppb.New(q.Until)
		}
		return onWire
	}
	return &semaphorev1.View{
		Name: of.text, Limit: int32(view.Limit), Held: int32(view.Taken), Holders: each(view.Holders, holder),
		Waiters: each(view.Waiters, waiter), WaitersOmitted: int32(view.Omitted), Quarantines: each(view.Quarantines, quarantine),
	}
}

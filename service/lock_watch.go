package service

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func (l *lockService) Get(ctx context.Context, request *lockv1.GetRequest) (*lockv1.GetResponse, error) {
	asked, err := l.directory.parseShown(request.GetName())
	if err != nil {
		return nil, err
	}
	view, err := l.directory.lock(asked).View(ctx, l.services.ensemble)
	if err != nil {
		return nil, err
	}
	return &lockv1.GetResponse{View: viewOnWire(asked, view)}, nil
}

// A lockView is a view of a lock that all its watchers share. It is not modified.
type lockView struct {
	recipes.View

	at      time.Time
	ageless *lockv1.View // tells this one apart from others
}

// lookAtLock reads a lock for its broadcast.
func (s *Services) lookAtLock(ctx context.Context, lock name) (*lockView, recipes.Changes, error) {
	view, changes, err := s.lockDirectory().lock(lock).WatchView(ctx, s.ensemble)
	if err != nil {
		return nil, nil, err
	}
	return &lockView{View: view, at: time.Now(), ageless: ageless(viewOnWire(lock, view))}, changes, nil
}

// message is the view as it is now, with everybody's age.
func (v *lockView) message(of name) *lockv1.View {
	return aged(viewOnWire(of, v.View), time.Since(v.at))
}

func (l *lockService) Watch(request *lockv1.WatchRequest, stream grpc.ServerStreamingServer[lockv1.WatchResponse]) error {
	asked, err := l.directory.parseShown(request.GetName())
	if err != nil {
		return err
	}
	box, of, err := openWatch(request, stream, &lockv1.WatchResponse{Keepalive: alive})
	if err != nil {
		return err
	}
	var told toldView
	return showOn(stream, l.services.locks.watch(asked), l.services.drain, of, func(now shown[*lockView]) error {
		if told.isNews(now.view.ageless, now.stale) {
			box.Put(topicPlace, func() (*lockv1.WatchResponse, bool) {
				return &lockv1.WatchResponse{View: now.view.message(asked), Stale: now.stale}, true
			})
		}
		return nil
	})
}

func viewOnWire(of name, view recipes.View) *lockv1.View {
	onWire := &lockv1.View{
		Name: of.text, Holders: each(view.Holders, lockContender), Waiters: each(view.Waiters, lockContender),
		WaitersOmitted: int32(view.Omitted),
	}
	if view.LostDelay > 0 {
		onWire.LostHold = &lockv1.LostHold{FencingToken: view.Lost, LockDelay: durationpb.New(view.LostDelay)}
	}
	return onWire
}

func each[From, To any](list []From, onWire func(From) To) []To {
	listed := make([]To, 0, len(list))
	for _, one := range list {
		listed = append(listed, onWire(one))
	}
	return listed
}

// lockContender is a contender for a lock.
func lockContender(contender recipes.Contender) *holdv1.Contender {
	onWire := contenderOnWire(contender)
	onWire.Mode, onWire.Token = new(modeOnWire(contender.Mode)), contender.Token
	if of := contender.Reserved; of != nil {
		onWire.Claim = &holdv1.Reservation{Reason: of.Reason, Until: optionalTime(of.Until)}
	}
	if contender.Delay > 0 {
		onWire.LockDelay = durationpb.New(contender.Delay)
	}
	return onWire
}

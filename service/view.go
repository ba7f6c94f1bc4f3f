package service

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func (l *lockService) Get(ctx context.Context, request *lockv1.GetRequest) (*lockv1.GetResponse, error) {
	asked, err := parseName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	view, err := l.directory.lock(asked).View(ctx, l.services.ensemble)
	if err != nil {
		return nil, err
	}
	return &lockv1.GetResponse{View: viewOnWire(asked, view)}, nil
}

func (l *lockService) Watch(request *lockv1.WatchRequest, stream grpc.ServerStreamingServer[lockv1.WatchResponse]) error {
	asked, err := parseName("name", request.GetName())
	if err != nil {
		return err
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	w := &watching{
		name: asked, lock: l.directory.lock(asked), tree: l.services.ensemble,
		stopping: l.services.drain.notice, box: newOutbox(stream.Send),
	}
	ctx, cancel := context.WithCancel(stream.Context())
	afterStatus(stream.Context(), w.finish)
	defer cancel()
	return w.run(ctx)
}

// A watching is one Watch stream: look, tell, wait for a change, and start over.
type watching struct {
	name     name
	lock     recipes.Lock
	tree     recipes.Tree
	stopping <-chan struct{}
	box      *outbox[*lockv1.WatchResponse]
	told     *lockv1.View // without ages; nil before the first
	asking   <-chan struct{}
}

// A look is a view and what to wait for before the next.
type look struct {
	view    recipes.View
	changes recipes.Changes
}

func (w *watching) run(ctx context.Context) error {
	for {
		seen, err := w.ask(run(func() (look, error) {
			view, changes, err := w.lock.WatchView(ctx, w.tree)
			return look{view, changes}, err
		}))
		switch {
		case err == nil:
			w.tell(seen.view)
			_, err = w.ask(run(func() (look, error) { return look{}, seen.changes.Wait(ctx) }))
		case errors.Is(err, recipes.ErrUnreachable) && w.told != nil:
			_, err = w.ask(run(func() (look, error) { return look{}, wait(ctx, countdown) }))
		}
		if err != nil {
			return err
		}
	}
}

// ask waits for an errand, or for what ends the stream.
func (w *watching) ask(errand *errand[look]) (look, error) {
	w.asking = errand.done
	select {
	case <-errand.done:
		return errand.wait()
	case <-w.stopping:
		return look{}, errStopping
	case <-w.box.slow:
		return look{}, errSlowReader
	}
}

// tell sends a view that differs from the last in more than ages.
func (w *watching) tell(view recipes.View) {
	ageless := viewOnWire(w.name, view)
	for _, contender := range ageless.GetHolders() {
		contender.Age = nil
	}
	for _, contender := range ageless.GetWaiters() {
		contender.Age = nil
	}
	if proto.Equal(ageless, w.told) {
		return
	}
	w.told = ageless
	w.box.put(topicPlace, func() (*lockv1.WatchResponse, bool) {
		return &lockv1.WatchResponse{View: viewOnWire(w.name, view)}, true
	})
}

// finish waits for what runs beside the stream. All of it has heard of the stream's end.
func (w *watching) finish() {
	if w.asking != nil {
		<-w.asking
	}
	w.box.wait()
}

func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func viewOnWire(of name, view recipes.View) *lockv1.View {
	return &lockv1.View{
		Name: of.text, Holders: contendersOnWire(view.Holders), Waiters: contendersOnWire(view.Waiters),
		WaitersOmitted: int32(view.Omitted),
	}
}

func contendersOnWire(contenders []recipes.Contender) []*lockv1.Contender {
	onWire := make([]*lockv1.Contender, 0, len(contenders))
	for _, contender := range contenders {
		onWire = append(onWire, contenderOnWire(contender))
	}
	return onWire
}

func contenderOnWire(contender recipes.Contender) *lockv1.Contender {
	return &lockv1.Contender{
		Mode: modeOnWire(contender.Mode), Owner: contender.Owner, Metadata: contender.Metadata,
		FencingToken: contender.Token, Age: durationpb.New(contender.Age), Foreign: contender.Foreign,
		RevocationRequested: contender.Revoked,
	}
}

package service

import (
	"context"

	"google.golang.org/grpc"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A setView is a view of a set that all its watchers share. It is not modified.
type setView struct {
	recipes.AssignmentView

	ageless *assignmentv1.View // tells this one apart from others
}

// lookAtSet reads a set for its broadcast.
func (s *Services) lookAtSet(ctx context.Context, of watchedName) (*setView, recipes.Changes, error) {
	view, changes, err := s.assignment(of.name).WatchExisting(ctx, s.ensemble)
	if err == nil {
		err = s.watched.note(ctx, of.identity, len(changes))
	}
	if err != nil {
		return nil, nil, meaningOfSet(err, of.name.text)
	}
	ageless := setOnWire(of.name, view)
	ageless.Age, ageless.ShortFor = nil, nil
	for _, member := range ageless.GetMembers() {
		member.Age = nil
	}
	return &setView{view, ageless}, changes, nil
}

func (s *assignmentService) Watch(
	request *assignmentv1.WatchRequest, stream grpc.ServerStreamingServer[assignmentv1.WatchResponse],
) error {
	asked, err := parseSet(request)
	if err != nil {
		return err
	}
	box, of, err := openWatch(request, stream, &assignmentv1.WatchResponse{Keepalive: alive})
	if err != nil {
		return err
	}
	var told toldView
	shared := s.services.sets.watch(watchedName{asked, caller.Of(stream.Context()).Identity})
	return showOn(stream, shared, s.services.drain, of, func(now shown[*setView]) error {
		if told.isNews(now.view.ageless, now.stale) {
			box.Put(topicPlace, func() (*assignmentv1.WatchResponse, bool) {
				return &assignmentv1.WatchResponse{View: setOnWire(asked, now.view.AssignmentView), Stale: now.stale}, true
			})
		}
		return nil
	})
}

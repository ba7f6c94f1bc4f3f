package service

import (
	"cmp"
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
)

func (e *electionService) Get(ctx context.Context, request *electionv1.GetRequest) (*electionv1.GetResponse, error) {
	asked, err := parseName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	view, err := e.election(asked).View(ctx, e.services.ensemble)
	if err := cmp.Or(err, view.Readable()); err != nil {
		return nil, err
	}
	return &electionv1.GetResponse{
		Leader: leaderOnWire(asked, view.Holders), Candidates: each(view.Waiters, candidateOnWire), CandidatesOmitted: int32(view.Omitted),
	}, nil
}

func (e *electionService) Watch(
	request *electionv1.WatchRequest, stream grpc.ServerStreamingServer[electionv1.WatchResponse],
) error {
	asked, err := parseName("name", request.GetName())
	if err != nil {
		return err
	}
	keepalive := &electionv1.WatchResponse{Event: &electionv1.WatchResponse_Keepalive{Keepalive: alive}}
	box, of, err := openWatch(request, stream, keepalive)
	if err != nil {
		return err
	}
	observed := observation{of: asked}
	return showOn(stream, e.services.locks.watch(asked), e.services.drain, of, func(now shown[*lockView]) error {
		if err := now.view.Readable(); err != nil {
			return err
		}
		if news := observed.learn(now); news != nil {
			box.Put(topicPlace, func() (*electionv1.WatchResponse, bool) { return news, true })
		}
		return nil
	})
}

// An observation is what one Watch stream knows of an election.
type observation struct {
	of   name
	term int64 // the newest that was seen
	told *electionv1.WatchResponse
}

// learn takes over what is shown, and returns what is to be told; nil if that was told last. An earlier term than one that was seen was read
// from a server that is behind: it says nothing but that.
func (o *observation) learn(now shown[*lockView]) *electionv1.WatchResponse {
	news := &electionv1.WatchResponse{Event: &electionv1.WatchResponse_Stale{Stale: &holdv1.Stale{}}}
	leader := leaderOnWire(o.of, now.view.Holders)
	switch term := leader.GetTicket().GetFencingToken(); {
	case now.stale:
	case leader == nil:
		news.Event = &electionv1.WatchResponse_Vacant{Vacant: &electionv1.Vacant{}}
	case term >= o.term:
		news.Event, o.term = &electionv1.WatchResponse_Leader{Leader: leader}, term
	}
	if proto.Equal(news, o.told) {
		return nil
	}
	o.told = news
	return news
}

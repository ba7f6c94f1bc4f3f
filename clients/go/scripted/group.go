package scripted

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// Groups are the answers of a Server about groups. Update answers OK at first, the others UNIMPLEMENTED.
type Groups struct {
	Update func(context.Context, *membershipv1.UpdateRequest) (*membershipv1.UpdateResponse, error)
	Get    func(context.Context, *membershipv1.GetRequest) (*membershipv1.GetResponse, error)
	List   func(context.Context, *membershipv1.ListRequest) (*membershipv1.ListResponse, error)
	Watch  func(*membershipv1.WatchRequest, grpc.ServerStreamingServer[membershipv1.WatchResponse]) error
	Create func(context.Context, *membershipv1.CreateRequest) (*membershipv1.CreateResponse, error)
	Delete func(context.Context, *membershipv1.DeleteRequest) (*membershipv1.DeleteResponse, error)

	t     testing.TB
	joins chan *Join
}

func newGroups(t testing.TB) Groups {
	t.Helper()
	g := Groups{t: t, joins: make(chan *Join, 100)}
	g.Update = func(context.Context, *membershipv1.UpdateRequest) (*membershipv1.UpdateResponse, error) {
		return &membershipv1.UpdateResponse{}, nil
	}
	return g
}

// NextJoin is the next call of Join.
func (g *Groups) NextJoin() *Join { g.t.Helper(); return next(g.t, g.joins, "Join") }

// A Join is one call of MembershipService.Join, or what stands for it on a lease's stream.
type Join struct {
	stream[membershipv1.JoinResponse]
	Request *membershipv1.JoinRequest
}

// Admit makes the caller a member.
func (j *Join) Admit(incarnation int64) {
	j.t.Helper()
	j.Send(&membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Joined{
		Joined: &membershipv1.Joined{Incarnation: incarnation},
	}})
}

type groupServer struct {
	membershipv1.UnimplementedMembershipServiceServer
	g *Groups
}

func (g groupServer) Join(
	request *membershipv1.JoinRequest, server grpc.ServerStreamingServer[membershipv1.JoinResponse],
) error {
	join := &Join{stream: newStream(g.g.t, server), Request: request}
	g.g.joins <- join
	return join.wait()
}

func (g groupServer) Watch(
	request *membershipv1.WatchRequest, server grpc.ServerStreamingServer[membershipv1.WatchResponse],
) error {
	return watched(g.g.Watch, request, server)
}

package sidekeeper_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func TestGetShowsTheView(t *testing.T) {
	server := scripted.Start(t)
	server.Get = func(_ context.Context, request *lockv1.GetRequest) (*lockv1.GetResponse, error) {
		return &lockv1.GetResponse{View: &lockv1.View{Name: request.GetName()}}, nil
	}
	client, _ := dial(t, server)
	if view, err := client.Get(t.Context(), "orders"); err != nil || view.Name != "orders" {
		t.Error(view, err)
	}
}

func TestListGoesThroughAllPages(t *testing.T) {
	server := scripted.Start(t)
	server.List = func(_ context.Context, request *lockv1.ListRequest) (*lockv1.ListResponse, error) {
		name := request.GetPrefix() + "/" + request.GetPageToken()
		next := map[string]string{"": "a", "a": "b", "b": ""}[request.GetPageToken()]
		return &lockv1.ListResponse{Locks: []*lockv1.Lock{{Name: name}}, NextPageToken: next}, nil
	}
	client, _ := dial(t, server)
	names := ""
	for lock, err := range client.List(t.Context(), "orders") {
		if err != nil {
			t.Fatal(err)
		}
		names += lock.Name + " "
	}
	if names != "orders/ orders/a orders/b " {
		t.Error(names)
	}
}

func TestLeasesEndWithTheError(t *testing.T) {
	server := scripted.Start(t)
	server.Leases = func(_ context.Context, request *leasev1.ListRequest) (*leasev1.ListResponse, error) {
		if request.GetPageToken() != "" {
			return nil, scripted.Status(codes.InvalidArgument, "INVALID_FIELD", "page_token")
		}
		return &leasev1.ListResponse{Leases: []*leasev1.Lease{{Owner: "billing"}}, NextPageToken: "x"}, nil
	}
	client, _ := dial(t, server)
	var seen []string
	for lease, err := range client.Leases(t.Context()) {
		owner := ""
		if lease != nil {
			owner = lease.Owner
		}
		seen = append(seen, fmt.Sprint(owner, " ", err))
	}
	if got := fmt.Sprintf("%q", seen); got != `["billing <nil>" " InvalidArgument (INVALID_FIELD): page_token"]` {
		t.Error(got)
	}
}

func TestWatchShowsViewsUntilItsReaderLeaves(t *testing.T) {
	server := scripted.Start(t)
	left := make(chan struct{})
	server.Watch = func(_ *lockv1.WatchRequest, stream grpc.ServerStreamingServer[lockv1.WatchResponse]) error {
		defer close(left)
		for i := range int32(2) {
			if err := stream.Send(&lockv1.WatchResponse{View: &lockv1.View{WaitersOmitted: i}}); err != nil {
				return err
			}
		}
		<-stream.Context().Done()
		return nil
	}
	client, _ := dial(t, server)
	for view, err := range client.Watch(t.Context(), "orders") {
		if err != nil {
			t.Fatal(err)
		}
		if view.WaitersOmitted == 1 {
			break
		}
	}
	receive(t, left)
}

func TestWatchEndsWithTheError(t *testing.T) {
	server := scripted.Start(t)
	server.Watch = func(*lockv1.WatchRequest, grpc.ServerStreamingServer[lockv1.WatchResponse]) error {
		return scripted.Status(codes.Unavailable, "SIDECAR_STOPPING", "going down")
	}
	client, _ := dial(t, server)
	for _, err := range client.Watch(t.Context(), "orders") {
		want(t, err, "Unavailable (SIDECAR_STOPPING): going down", sidekeeper.ErrSidecarStopping)
	}
}

func TestRevokeAndBreakSendWhatTheyWereGiven(t *testing.T) {
	server := scripted.Start(t)
	sent := make(chan string, 2)
	server.Revoke = func(_ context.Context, r *lockv1.RevokeRequest) (*lockv1.RevokeResponse, error) {
		sent <- fmt.Sprint(r.GetName(), " ", r.GetReason(), " ", r.GetGrace().AsDuration())
		return &lockv1.RevokeResponse{Asked: 3}, nil
	}
	server.Break = func(_ context.Context, r *lockv1.BreakRequest) (*lockv1.BreakResponse, error) {
		sent <- fmt.Sprint(r.GetName(), " ", r.GetFencingToken(), " ", r.GetReason(), " ", r.GetForceAfter())
		return &lockv1.BreakResponse{Forced: true}, nil
	}
	client, _ := dial(t, server)
	asked, err := client.Revoke(t.Context(), "orders", sidekeeper.RevokeOptions{Reason: "moving", Grace: new(time.Second)})
	if err != nil || asked != 3 || <-sent != "orders moving 1s" {
		t.Error(asked, err)
	}
	forced, err := client.Break(t.Context(), "orders", 42, sidekeeper.BreakOptions{Reason: "stuck"})
	if err != nil || !forced || <-sent != "orders 42 stuck <nil>" {
		t.Error(forced, err)
	}
}

func TestHealthTellsTheProcessFromTheEnsemble(t *testing.T) {
	server := scripted.Start(t)
	server.Health.SetServingStatus("sidekeeper.readiness", healthv1.HealthCheckResponse_NOT_SERVING)
	client, _ := dial(t, server)
	alive, err := client.Alive(t.Context())
	if err != nil || !alive {
		t.Error(alive, err)
	}
	ready, err := client.Ready(t.Context())
	if err != nil || ready {
		t.Error(ready, err)
	}
}

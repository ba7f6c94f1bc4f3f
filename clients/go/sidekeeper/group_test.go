package sidekeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

func TestAGroupIsShownAndWatched(t *testing.T) {
	server := scripted.Start(t)
	view := &membershipv1.View{Group: "shop", Members: []*membershipv1.Member{{Member: "a", Incarnation: 7}}}
	server.Groups.Get = func(context.Context, *membershipv1.GetRequest) (*membershipv1.GetResponse, error) {
		return &membershipv1.GetResponse{View: view}, nil
	}
	server.Groups.Watch = func(
		_ *membershipv1.WatchRequest, stream grpc.ServerStreamingServer[membershipv1.WatchResponse],
	) error {
		if err := stream.Send(&membershipv1.WatchResponse{View: view, Stale: true}); err != nil {
			return err
		}
		return scripted.Status(codes.Unavailable, "SIDECAR_STOPPING", "it is going down")
	}
	client, _ := dial(t, server)
	got, err := client.GetGroup(t.Context(), "shop")
	if err != nil || got.Members[0].Incarnation != 7 {
		t.Errorf("%v, %v", got, err)
	}
	seen := ""
	for change, err := range client.WatchGroup(t.Context(), "shop") {
		if err != nil {
			seen += strconv.FormatBool(errors.Is(err, sidekeeper.ErrSidecarStopping))
			break
		}
		seen += fmt.Sprint(len(change.View.Members), change.Stale, " ")
	}
	if seen != "1 true true" {
		t.Error(seen)
	}
}

func TestGroupsAreListedPageByPage(t *testing.T) {
	server := scripted.Start(t)
	server.Groups.List = func(_ context.Context, request *membershipv1.ListRequest) (*membershipv1.ListResponse, error) {
		if request.GetPageToken() == "" {
			return &membershipv1.ListResponse{Groups: []*membershipv1.Group{{Group: "a"}}, NextPageToken: "next"}, nil
		}
		return &membershipv1.ListResponse{Groups: []*membershipv1.Group{{Group: request.GetPrefix()}}}, nil
	}
	client, _ := dial(t, server)
	names := ""
	for group, err := range client.ListGroups(t.Context(), "b") {
		if err != nil {
			t.Fatal(err)
		}
		names += group.Group
	}
	if names != "ab" {
		t.Error(names)
	}
}

func TestAGroupIsCreatedAndDeleted(t *testing.T) {
	server := scripted.Start(t)
	server.Groups.Create = func(context.Context, *membershipv1.CreateRequest) (*membershipv1.CreateResponse, error) {
		return nil, scripted.Status(codes.FailedPrecondition, "GROUP_NOT_EMPTY", "it has members")
	}
	server.Groups.Delete = func(_ context.Context, r *membershipv1.DeleteRequest) (*membershipv1.DeleteResponse, error) {
		if !r.GetForce() || r.GetReason() != "moved" {
			return nil, scripted.Status(codes.NotFound, "GROUP_NOT_FOUND", "no such group")
		}
		return &membershipv1.DeleteResponse{Forced: int32(r.GetForceAfter().GetSeconds())}, nil
	}
	client, _ := dial(t, server)
	if err := client.CreateGroup(t.Context(), "shop"); !errors.Is(err, sidekeeper.ErrGroupNotEmpty) {
		t.Error(err)
	}
	if _, err := client.DeleteGroup(t.Context(), "shop", sidekeeper.DeleteGroupOptions{}); !errors.Is(err, sidekeeper.ErrGroupNotFound) {
		t.Error(err)
	}
	forced, err := client.DeleteGroup(t.Context(), "shop", sidekeeper.DeleteGroupOptions{
		Force: true, Reason: "moved", ForceAfter: new(3 * time.Second),
	})
	if forced != 3 || err != nil {
		t.Error(forced, err)
	}
}

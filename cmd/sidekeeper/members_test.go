package main

import (
	"context"
	"path"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

func groupView() *membershipv1.View {
	return &membershipv1.View{
		Group: "web",
		Members: []*membershipv1.Member{
			{
				Member: "web-1", Incarnation: 4294967321, Owner: "host/7", Identity: "uid:7", Age: durationpb.New(83 * time.Second),
				Metadata: map[string]string{"port": "80", "az": "x"},
			},
			{Member: "web-2", Incarnation: 4294967330, Age: durationpb.New(time.Second), Foreign: true, Text: "\x1b[2J"},
		},
		MembersOmitted: 4,
	}
}

func TestMembersLsShowsAGroup(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Groups.Get = func(_ context.Context, r *membershipv1.GetRequest) (*membershipv1.GetResponse, error) {
		if r.GetGroup() == "web" {
			return &membershipv1.GetResponse{View: groupView()}, nil
		}
		return &membershipv1.GetResponse{View: &membershipv1.View{Group: r.GetGroup()}}, nil
	}
	wantOutput(t, server, 0, ""+
		"MEMBER  INCARNATION  OWNER   IDENTITY  AGE    METADATA      NOTES\n"+
		"web-1   4294967321   host/7  uid:7     1m23s  az=x,port=80  -\n"+
		"web-2   4294967330   -       -         1s     \"\\x1b[2J\"     not Sidekeeper's\n"+
		"and 4 more\n", "members", "ls", "web")
	wantOutput(t, server, 0, "nobody has no members\n", "members", "ls", "nobody")
	wantOutput(t, server, 0, `{"group":"nobody","members":[],"membersOmitted":0,"permanent":false}`+"\n",
		"members", "ls", "nobody", "-o", "json")
}

func TestMembersWatchShowsWhatChanges(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	view := func(members ...*membershipv1.Member) *membershipv1.View {
		return &membershipv1.View{Group: "web", Members: members}
	}
	member := func(name string, incarnation int64, port string) *membershipv1.Member {
		return &membershipv1.Member{Member: name, Incarnation: incarnation, Metadata: map[string]string{"port": port}}
	}
	reference := func(name string, incarnation int64) []*membershipv1.MemberReference {
		return []*membershipv1.MemberReference{{Member: name, Incarnation: incarnation}}
	}
	server.Groups.Watch = func(
		_ *membershipv1.WatchRequest, stream grpc.ServerStreamingServer[membershipv1.WatchResponse],
	) error {
		for _, response := range []*membershipv1.WatchResponse{
			{View: view(member("a", 7, "1")), Joined: reference("a", 7)},
			{View: view(member("a", 7, "2")), Changed: reference("a", 7)},
			{View: view(member("a", 8, "2")), Left: reference("a", 7), Joined: reference("a", 8)},
			{View: view(member("a", 8, "2")), Stale: true},
			{View: view(), Left: reference("a", 8)},
			{View: view(), ChangesOmitted: true},
		} {
			if err := stream.Send(response); err != nil {
				return err
			}
		}
		return scripted.Status(codes.Unavailable, "SIDECAR_STOPPING", "the sidecar is going down")
	}
	wantOutput(t, server, 69, ""+
		"MEMBER  INCARNATION  OWNER  IDENTITY  AGE  METADATA  NOTES\n"+
		"a       7            -      -         0s   port=1    -\n"+
		"changed a 7 port=2\n"+
		"left a 7\njoined a 8 port=2\n"+
		"no contact with the ensemble: others may have joined or left\n"+
		"left a 8\n"+
		"contact with the ensemble is back\n"+
		"web has no members\n"+
		"sidekeeper: the sidecar is going down (SIDECAR_STOPPING)\n", "members", "watch", "web")
}

func TestMembersWatchTellsProgramsAllOfIt(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Groups.Watch = func(
		r *membershipv1.WatchRequest, stream grpc.ServerStreamingServer[membershipv1.WatchResponse],
	) error {
		if err := stream.Send(&membershipv1.WatchResponse{View: &membershipv1.View{Group: r.GetGroup()}}); err != nil {
			return err
		}
		return scripted.Status(codes.PermissionDenied, "ENSEMBLE_DENIED", "denied")
	}
	wantOutput(t, server, 77, `{"view":{"group":"web","members":[],"membersOmitted":0,"permanent":false},"joined":[],"left":[],`+
		`"changed":[],"changesOmitted":false,"stale":false}`+"\nsidekeeper: denied (ENSEMBLE_DENIED)\n",
		"members", "watch", "web", "-o", "json")
}

func TestGroupsAreListed(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Groups.List = func(_ context.Context, r *membershipv1.ListRequest) (*membershipv1.ListResponse, error) {
		return &membershipv1.ListResponse{Groups: []*membershipv1.Group{
			{Group: path.Join(r.GetPrefix(), "eu"), Members: 3}, {Group: path.Join(r.GetPrefix(), "us"), Permanent: true},
		}}, nil
	}
	table := "NAME    MEMBERS  PERMANENT\nweb/eu  3        no\nweb/us  0        yes\n"
	wantOutput(t, server, 0, table, "groups", "web")
	wantOutput(t, server, 0, table, "groups", "ls", "web")
	wantOutput(t, server, 0, `{"groups":[{"group":"eu","members":3,"permanent":false},`+
		`{"group":"us","members":0,"permanent":true}],"nextPageToken":""}`+"\n", "groups", "-o", "json")
	wantOutput(t, server, 0, "eu\nus\n:4\nCompletion ended with directive: ShellCompDirectiveNoFileComp\n", "__complete", "members", "ls", "")
}

func TestAGroupIsMadeAndRemoved(t *testing.T) {
	t.Parallel()
	server, operators := scripted.Start(t), scripted.Start(t)
	server.Groups.Create = func(context.Context, *membershipv1.CreateRequest) (*membershipv1.CreateResponse, error) {
		return &membershipv1.CreateResponse{}, nil
	}
	server.Groups.Delete = func(context.Context, *membershipv1.DeleteRequest) (*membershipv1.DeleteResponse, error) {
		return nil, scripted.Status(codes.FailedPrecondition, "GROUP_NOT_EMPTY", "the group has members")
	}
	operators.Groups.Delete = func(_ context.Context, r *membershipv1.DeleteRequest) (*membershipv1.DeleteResponse, error) {
		if !r.GetForce() || r.GetReason() != "moved" {
			return nil, scripted.Status(codes.PermissionDenied, "OPERATOR_ONLY", "for operators")
		}
		return &membershipv1.DeleteResponse{Forced: int32(r.GetForceAfter().GetSeconds())}, nil
	}
	wantOutput(t, server, 0, "", "groups", "create", "web")
	wantOutput(t, server, 1, "sidekeeper: the group has members (GROUP_NOT_EMPTY)\n", "groups", "rm", "web")
	by := []string{"--operator-address", operators.Target, "groups", "rm", "web", "--force", "--reason", "moved"}
	wantOutput(t, server, 0, "", by...)
	wantOutput(t, server, 0, "members removed from outside, who may not have known in time: 2\n", append(by, "--force-after", "2s")...)
	wantOutput(t, server, 0, `{"forced":2}`+"\n", append(by, "--force-after", "2s", "-o", "json")...)
	wantOutput(t, server, 64, "sidekeeper: --reason and --force-after are for --force\n", "groups", "rm", "web", "--reason", "moved")
	wantOutput(t, server, 64, "sidekeeper: --force needs --reason: it says why, to the members and in the audit\n", by[:len(by)-2]...)
}

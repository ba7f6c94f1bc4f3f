package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
)

const (
	waits    = membershipv1.OnConflict_ON_CONFLICT_WAIT
	replaces = membershipv1.OnConflict_ON_CONFLICT_REPLACE
)

const shopPath = "/sidekeeper/groups/shop"

// A joiner is one Join stream.
type joiner struct {
	t           *testing.T
	stream      grpc.ServerStreamingClient[membershipv1.JoinResponse]
	cancel      context.CancelFunc
	last        *membershipv1.JoinResponse
	incarnation int64
}

// join asks for `shop` unless the request names another group.
func (s *scene) join(from callers, request *membershipv1.JoinRequest) *joiner {
	s.t.Helper()
	if request.GetGroup() == "" {
		request.Group = "shop"
	}
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.groups.Join(ctx, request)
	s.must(err)
	return &joiner{t: s.t, stream: stream, cancel: cancel}
}

// joined joins under a name that is free, with a lease of its own.
func (s *scene) joined(from callers, member string) *joiner {
	s.t.Helper()
	j := s.join(from, &membershipv1.JoinRequest{Member: member})
	j.sees("joined")
	return j
}

// next is the next event or the end, in words.
func (j *joiner) next() string {
	event, err := j.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	j.last = event
	switch event := event.GetEvent().(type) {
	case *membershipv1.JoinResponse_Joined:
		j.incarnation = event.Joined.GetIncarnation()
		return "joined"
	case *membershipv1.JoinResponse_Suspended:
		return "suspended"
	case *membershipv1.JoinResponse_Resumed:
		return "resumed"
	case *membershipv1.JoinResponse_Updated:
		return strings.TrimPrefix(fmt.Sprint(event.Updated.GetMetadata()), "map")
	}
	return "an event without a name"
}

func (j *joiner) sees(events ...string) {
	j.t.Helper()
	for _, event := range events {
		same(j.t, "event", j.next(), event)
	}
}

// ends fails unless the stream ends so, whatever comes before.
func (j *joiner) ends(with string) {
	j.t.Helper()
	for {
		if _, err := j.stream.Recv(); err != nil {
			same(j.t, "end", outcome(err), with)
			return
		}
	}
}

// inside are the names of the nodes in the group `shop`.
func (s *scene) inside() string {
	names := s.ensemble.memory.Names(shopPath)
	slices.Sort(names)
	return strings.Join(names, " ")
}

// awaitInside returns when the group `shop` has these nodes.
func (s *scene) awaitInside(want string) {
	s.t.Helper()
	ctx := s.context()
	for s.inside() != want {
		_, changed, err := s.ensemble.WatchChildren(ctx, shopPath)
		if err != nil && !errors.Is(err, recipes.ErrNoNode) {
			s.t.Fatal(err)
		}
		if s.inside() == want {
			return
		}
		select {
		case <-changed.Done():
		case <-ctx.Done():
			s.t.Fatalf("in the group are %q, not %q", s.inside(), want)
		}
	}
}

// foreigner makes a member that is not ours.
func (s *scene) foreigner(name, data string) {
	s.t.Helper()
	session := s.ensemble.memory.OpenSession(0)
	_, err := s.ensemble.memory.Create(shopPath+"/"+name, []byte(data), embedded.Ephemeral, session.ID())
	s.must(err)
}

// A groupWatch is one Watch stream of a group.
type groupWatch struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[membershipv1.WatchResponse]
	cancel context.CancelFunc
	last   *membershipv1.WatchResponse
}

func (s *scene) watchGroup(from callers, group string) *groupWatch {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.groups.Watch(ctx, &membershipv1.WatchRequest{Group: group})
	s.must(err)
	return &groupWatch{t: s.t, stream: stream, cancel: cancel}
}

// next is the next message in words, as in "a b: +b", or the end.
func (w *groupWatch) next() string {
	response, err := w.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	w.last = response
	var members []string
	for _, member := range response.GetView().GetMembers() {
		members = append(members, member.GetMember())
	}
	words := strings.Join(members, " ") + ":"
	for _, list := range []struct {
		sign string
		of   []*membershipv1.MemberReference
	}{{"-", response.GetLeft()}, {"+", response.GetJoined()}, {"~", response.GetChanged()}} {
		for _, reference := range list.of {
			words += " " + list.sign + reference.GetMember()
		}
	}
	if response.GetStale() {
		words += " stale"
	}
	return words
}

func (w *groupWatch) sees(messages ...string) {
	w.t.Helper()
	for _, message := range messages {
		same(w.t, "message", w.next(), message)
	}
}

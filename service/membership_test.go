package service_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestGetShowsWhoIsInAGroup(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	about := map[string]string{"port": "1"}
	j := s.join(s.callers, &membershipv1.JoinRequest{Group: "team/shop", Member: "b", Owner: "pod-7", Metadata: about})
	j.sees("joined")
	session := s.ensemble.memory.OpenSession(0)
	_, err := s.ensemble.memory.Create("/sidekeeper/groups/team%2Fshop/A member", []byte("jvm"), embedded.Ephemeral, session.ID())
	s.must(err)
	response, err := s.groups.Get(s.context(), &membershipv1.GetRequest{Group: "team/shop"})
	s.must(err)
	members := response.GetView().GetMembers()
	for _, member := range members {
		if age := member.GetAge().AsDuration(); age < 0 || age > time.Minute {
			t.Errorf("age %v", age)
		}
		member.Age = nil
	}
	same(t, "group", response.GetView().GetGroup(), "team/shop")
	same(t, "members", members, []*membershipv1.Member{
		{Member: "A member", Incarnation: members[0].GetIncarnation(), Foreign: true, Text: "jvm"},
		{Member: "b", Incarnation: j.incarnation, Owner: "pod-7", Metadata: about, Identity: fmt.Sprintf("uid:%d", os.Getuid())},
	})
	response, err = s.groups.Get(s.context(), &membershipv1.GetRequest{Group: "nobody"})
	s.must(err)
	same(t, "members of a group that is not there", len(response.GetView().GetMembers()), 0)
}

func TestGroupsAreListedByNameInPages(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, group := range []string{"shop", "shop/eu", "shopping", "bar"} {
			s.join(s.callers, &membershipv1.JoinRequest{Group: group, Member: "a"}).sees("joined")
		}
		_, err := s.groups.Create(s.context(), &membershipv1.CreateRequest{Group: "made"})
		s.must(err)
		s.must(s.ensemble.MakeDirectory(s.context(), "/sidekeeper/groups/empty"))
		s.must(s.ensemble.MakeDirectory(s.context(), "/sidekeeper/groups/not a name"))
		list := func(request *membershipv1.ListRequest) (lines []string, next string) {
			response, err := s.groups.List(s.context(), request)
			s.must(err)
			for _, group := range response.GetGroups() {
				lines = append(lines, fmt.Sprint(group.GetGroup(), " ", group.GetMembers(), " ", group.GetPermanent()))
			}
			return lines, response.GetNextPageToken()
		}
		all, next := list(&membershipv1.ListRequest{})
		same(t, "groups", all, []string{"bar 1 false", "made 0 true", "shop 1 false", "shop/eu 1 false", "shopping 1 false"})
		same(t, "next page", next, "")
		below, _ := list(&membershipv1.ListRequest{Prefix: "shop"})
		same(t, "groups below shop", below, []string{"shop 1 false", "shop/eu 1 false"})
		var paged []string
		for token := ""; ; {
			var some []string
			some, token = list(&membershipv1.ListRequest{PageSize: 2, PageToken: token})
			if paged = append(paged, some...); token == "" {
				break
			}
		}
		same(t, "groups in pages", paged, all)
	})
}

func TestAGroupIsMadeAndDeleted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	create := func() string {
		_, err := s.groups.Create(s.context(), &membershipv1.CreateRequest{Group: "shop"})
		return outcome(err)
	}
	remove := func(from callers, request *membershipv1.DeleteRequest) string {
		request.Group = "shop"
		_, err := from.groups.Delete(s.context(), request)
		return outcome(err)
	}
	same(t, "Delete of nothing", remove(s.callers, &membershipv1.DeleteRequest{}), "NotFound GROUP_NOT_FOUND")
	j := s.joined(s.callers, "a")
	same(t, "Create with members", create(), "FailedPrecondition GROUP_NOT_EMPTY")
	same(t, "Delete with members", remove(s.callers, &membershipv1.DeleteRequest{}), "FailedPrecondition GROUP_NOT_EMPTY")
	same(t, "Delete by force", remove(s.callers, &membershipv1.DeleteRequest{Force: true}), "PermissionDenied OPERATOR_ONLY")
	j.cancel()
	s.awaitInside("")
	same(t, "Create", create(), "OK")
	same(t, "Create again", create(), "OK")
	j = s.joined(s.callers, "a")
	same(t, "Create of what is made, with members", create(), "OK")
	same(t, "Delete for no reason", remove(s.operators, &membershipv1.DeleteRequest{Force: true}), "InvalidArgument INVALID_FIELD reason")
	same(t, "Delete by an operator", remove(s.operators, &membershipv1.DeleteRequest{Force: true, Reason: "moved"}), "OK")
	_, err := j.stream.Recv()
	same(t, "end", outcome(err), "Aborted MEMBER_REMOVED")
	if !strings.Contains(err.Error(), "moved") {
		t.Errorf("the member is told %v", err)
	}
	same(t, "Delete again", remove(s.operators, &membershipv1.DeleteRequest{Force: true, Reason: "moved"}), "NotFound GROUP_NOT_FOUND")
}

func TestForeignMembersAreRemovedFromOutside(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.foreigner("a", "")
		response, err := s.operators.groups.Delete(s.context(), &membershipv1.DeleteRequest{
			Group: "shop", Force: true, Reason: "moved", ForceAfter: lasting(50 * time.Millisecond),
		})
		s.must(err)
		same(t, "forced", response.GetForced(), 1)
	})
}

func TestAWatchTellsWhatChanges(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		watch := s.watchGroup(s.callers, "shop")
		watch.sees(":")
		first := s.joined(s.callers, "a")
		watch.sees("a: +a")
		s.joined(s.callers, "b")
		watch.sees("a b: +b")
		late := s.watchGroup(s.callers, "shop")
		late.sees("a b: +a +b")
		incarnation := watch.last.GetView().GetMembers()[0].GetIncarnation()
		same(t, "incarnation", incarnation, first.incarnation)
		second := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", OnConflict: replaces})
		second.sees("joined")
		words := watch.next()
		if words == "b: -a" { // it has looked in between
			watch.sees("a b: +a")
		} else {
			same(t, "message", words, "a b: -a +a")
			same(t, "incarnation that left", watch.last.GetLeft()[0].GetIncarnation(), incarnation)
		}
		same(t, "incarnation that joined", watch.last.GetJoined()[0].GetIncarnation(), second.incarnation)
		second.cancel()
		watch.sees("b: -a")
	})
}

func TestAWatchOfAGroupGoesOnWhenTheGroupIsMadeAnew(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		watch := s.watchGroup(s.callers, "shop")
		watch.sees(":")
		_, err := s.groups.Create(s.context(), &membershipv1.CreateRequest{Group: "shop"})
		s.must(err)
		watch.sees(":")
		same(t, "permanent", watch.last.GetView().GetPermanent(), true)
		_, err = s.groups.Delete(s.context(), &membershipv1.DeleteRequest{Group: "shop"})
		s.must(err)
		watch.sees(":")
		same(t, "permanent", watch.last.GetView().GetPermanent(), false)
		s.joined(s.callers, "a")
		watch.sees("a: +a")
	})
}

func TestAWatchWithoutContactIsStaleAndClaimsNobodyGone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.joined(s.callers, "a")
		watch := s.watchGroup(s.callers, "shop")
		watch.sees("a: +a")
		s.ensemble.Suspend()
		watch.sees("a: stale")
		late := s.watchGroup(s.callers, "shop")
		late.sees("a: +a stale")
		s.joined(s.callers, "b")
		s.ensemble.Resume()
		joined := ""
		for joined == "" || watch.last.GetStale() { // contact may be told before or after the look
			if words := watch.next(); strings.Contains(words, "+") {
				joined += words
			}
		}
		same(t, "message", strings.TrimSuffix(joined, " stale"), "a b: +b")
	})
}

func TestAGroupIsLookedAtOnceHoweverManyWatchIt(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.joined(s.callers, "a")
		var watches []*groupWatch
		for range 50 {
			watch := s.watchGroup(s.callers, "shop")
			watch.sees("a: +a")
			watches = append(watches, watch)
		}
		before := s.ensemble.Count("WatchChildren")
		s.joined(s.callers, "b")
		for _, watch := range watches {
			watch.sees("a b: +b")
			watch.cancel()
		}
		same(t, "lists", s.ensemble.Count("WatchChildren")-before, 1)
	})
}

func TestWatchesEndWithTheReason(t *testing.T) {
	t.Parallel()
	t.Run("denied", func(t *testing.T) {
		s := newScene(t)
		s.ensemble.Before(func(standin.Operation) error { return recipes.ErrDenied })
		s.watchGroup(s.callers, "shop").sees("PermissionDenied ENSEMBLE_DENIED")
	})
	t.Run("no first look", func(t *testing.T) {
		s := newScene(t)
		s.ensemble.Before(func(standin.Operation) error { return recipes.ErrUnreachable })
		s.watchGroup(s.callers, "shop").sees("Unavailable ENSEMBLE_UNREACHABLE")
	})
	t.Run("too much is watched", func(t *testing.T) {
		s := newScene(t, func(o *service.Options) { o.MostWatched = 4 })
		first := s.joined(s.callers, "a")
		watch := s.watchGroup(s.callers, "shop")
		watch.sees("a: +a") // the list, the directory, the member
		other := s.watchGroup(s.callers, "others")
		other.sees(":")
		s.watchGroup(s.callers, "more").sees("ResourceExhausted WATCH_LIMIT")
		s.joined(s.callers, "b")
		watch.sees("ResourceExhausted WATCH_LIMIT")
		first.cancel()
		s.awaitWatchedBelow(4) // what a stream has watched counts until after its status
		s.watchGroup(s.callers, "more").sees(":")
	})
}

// awaitWatchedBelow returns when fewer nodes are watched.
func (s *scene) awaitWatchedBelow(limit int) {
	for ctx := s.context(); service.WatchedNodes(s.services) >= limit; runtime.Gosched() {
		s.must(ctx.Err())
	}
}

func TestAViewWithoutRoomForAllSaysHowManyAreMissing(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		session := s.ensemble.memory.OpenSession(0)
		for i := range 4000 {
			path := fmt.Sprintf("%s/%04d", shopPath, i)
			_, err := s.ensemble.memory.Create(path, []byte(strings.Repeat("x", 1000)), embedded.Ephemeral, session.ID())
			s.must(err)
		}
		watch := s.watchGroup(s.callers, "shop")
		watch.next()
		view := watch.last.GetView()
		if shown := len(view.GetMembers()); view.GetMembersOmitted() == 0 || shown+int(view.GetMembersOmitted()) != 4000 {
			t.Errorf("%d members and %d omitted", shown, view.GetMembersOmitted())
		}
	})
}

package service_test

import (
	"fmt"
	"testing"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// watchesSet returns the views of a Watch, in words, or its end.
func (s *scene) watchesSet(set string) func() string {
	s.t.Helper()
	watch, err := s.assignments.Watch(s.context(), &assignmentv1.WatchRequest{Set: set})
	s.must(err)
	return func() string {
		got, err := watch.Recv()
		if err != nil {
			return outcome(err)
		}
		view := got.GetView()
		free := 0
		for _, item := range view.GetItems() {
			if item.GetMember() == "" {
				free++
			}
		}
		words := fmt.Sprintf("%d members, %d of %d free", len(view.GetMembers()), free, len(view.GetItems()))
		return words + map[bool]string{true: ", stale"}[got.GetStale()]
	}
}

func TestAWatchOfASetSendsEachViewThatHasChanged(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "of none", s.watchesSet("shards")(), "NotFound ASSIGNMENT_NOT_FOUND")
		same(t, "of a wrong name", s.watchesSet("a b")(), "InvalidArgument INVALID_FIELD set")
		same(t, "Define", s.defines(&assignmentv1.DefineRequest{Set: "shards", Count: 4}), "OK")
		next := s.watchesSet("shards")
		same(t, "view", next(), "0 members, 4 of 4 free")
		member := s.shares(s.callers, &assignmentv1.JoinRequest{Set: "shards", Member: "a"})
		same(t, "view", next(), "1 members, 4 of 4 free")
		same(t, "view", next(), "1 members, 0 of 4 free")
		same(t, "view of another watch", s.watchesSet("shards")(), "1 members, 0 of 4 free")
		s.ensemble.Suspend()
		same(t, "view", next(), "1 members, 0 of 4 free, stale")
		s.ensemble.Resume()
		same(t, "view", next(), "1 members, 0 of 4 free")
		same(t, "Define", s.defines(&assignmentv1.DefineRequest{Set: "shards", Count: 5}), "OK")
		same(t, "view", next(), "1 members, 1 of 5 free")
		same(t, "view", next(), "1 members, 0 of 5 free")
		member.cancel()
		same(t, "view", next(), "0 members, 5 of 5 free")
		_, err := s.assignments.Delete(s.context(), &assignmentv1.DeleteRequest{Set: "shards"})
		s.must(err)
		same(t, "end", next(), "NotFound ASSIGNMENT_NOT_FOUND")
	})
}

func TestAWatchOfASetEndsWhenAnotherProgramWritesIt(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Define", s.defines(&assignmentv1.DefineRequest{Set: "shards", Count: 4}), "OK")
		next := s.watchesSet("shards")
		same(t, "view", next(), "0 members, 4 of 4 free")
		_, err := s.ensemble.Commit(s.context(), recipes.Set("/sidekeeper/assignments/shards", []byte("nonsense"), -1))
		s.must(err)
		same(t, "end", next(), "FailedPrecondition RECORD_MALFORMED")
	})
}

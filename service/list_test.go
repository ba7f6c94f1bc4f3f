package service_test

import (
	"fmt"
	"strings"
	"testing"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// contend puts a contender into a lock's directory, from outside.
func (s *scene) contend(directory string) {
	s.t.Helper()
	_, err := s.ensemble.memory.Create("/locks/"+directory+"/_c_x-lock-", nil, embedded.PersistentSequential, 0)
	s.must(err)
}

// listed are the names of all pages, each with its count of contenders.
func (s *scene) listed(request *lockv1.ListRequest) []string {
	s.t.Helper()
	var names []string
	for {
		page, err := s.LockServiceClient.List(s.context(), request)
		s.must(err)
		for _, lock := range page.GetLocks() {
			names = append(names, fmt.Sprintf("%s:%d", lock.GetName(), lock.GetContenders()))
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return names
		}
	}
}

func TestListNamesLocksInOrderByWholeSegmentsAndInPages(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, directory := range []string{"b", "a%2Fx", "a-b", "a", "a%2Fy", "a", "orders:eu west", "zookeeper"} {
			s.contend(directory)
		}
		_, err := s.ensemble.memory.Create("/locks/idle", nil, embedded.Persistent, 0)
		s.must(err)
		for _, size := range []int32{0, 1, 2, 1000} {
			same(t, "all", s.listed(&lockv1.ListRequest{PageSize: size}), "[a:2 a-b:1 a/x:1 a/y:1 b:1 orders:eu west:1]")
			same(t, "below a", s.listed(&lockv1.ListRequest{PageSize: size, Prefix: "a"}), "[a:2 a/x:1 a/y:1]")
		}
		same(t, "below c", s.listed(&lockv1.ListRequest{Prefix: "c"}), "[]")
	})
}

func TestListGoesOnWhereItWasThoughEntriesComeAndGo(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, directory := range []string{"a", "b", "c"} {
			s.contend(directory)
		}
		page, err := s.LockServiceClient.List(s.context(), &lockv1.ListRequest{PageSize: 2})
		s.must(err)
		s.must(s.ensemble.memory.Delete("/locks/b/" + s.ensemble.memory.Names("/locks/b")[0]))
		s.contend("aa")
		same(t, "rest", s.listed(&lockv1.ListRequest{PageToken: page.GetNextPageToken()}), "[c:1]")
	})
}

func TestListOfNestedDirectories(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.contend("team/orders")
		s.contend("team/items")
		s.contend("alone")
		s.contend("team/eu:west")
		same(t, "names", s.listed(&lockv1.ListRequest{}), "[alone:1 team/eu:west:1 team/items:1 team/orders:1]")
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "team"}).sees("FailedPrecondition NAME_IS_DIRECTORY")
	}, func(o *service.Options) { o.NestedLocks = true })
}

// A program of another library calls its locks as it likes. They are shown, and no lock of that name is granted.
func TestALockIsShownUnderTheNameThatAnotherProgramGaveIt(t *testing.T) {
	t.Parallel()
	const others = "orders:eu west"
	virtually(t, func(t *testing.T, s *scene) {
		s.contend(others)
		got, err := s.LockServiceClient.Get(s.context(), &lockv1.GetRequest{Name: others})
		s.must(err)
		same(t, "view", len(got.GetView().GetHolders()), 1)
		explained, err := s.LockServiceClient.Explain(s.context(), &lockv1.ExplainRequest{Name: others})
		s.must(err)
		same(t, "explanation", explained.GetLocks()[0].GetName(), others)
		watch, err := s.LockServiceClient.Watch(s.context(), &lockv1.WatchRequest{Name: others})
		s.must(err)
		first, err := watch.Recv()
		s.must(err)
		same(t, "watched", len(first.GetView().GetHolders()), 1)
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: others}).sees("InvalidArgument INVALID_FIELD name")
		for _, bad := range []string{"", "a//b", "..", "zookeeper", "a%2Fb", "a\tb", strings.Repeat("x", 1025)} {
			_, err := s.LockServiceClient.Get(s.context(), &lockv1.GetRequest{Name: bad})
			same(t, bad, outcome(err), "InvalidArgument INVALID_FIELD name")
		}
	})
}

// What another program keeps to itself must not hide all else.
func TestAListLeavesOutWhatAnotherProgramKeepsToItself(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.contend("orders")
		s.contend("orders:eu")
		s.contend("team:eu/items")
		for why, want := range map[error]string{recipes.ErrDenied: "[orders:1]", &recipes.LargeDirectory{}: "[orders:1]"} {
			s.ensemble.Before(func(done standin.Operation) error {
				if strings.Contains(done.Path, ":eu") {
					return why
				}
				return nil
			})
			same(t, why.Error(), s.listed(&lockv1.ListRequest{}), want)
		}
		s.ensemble.Before(func(done standin.Operation) error {
			if done.Path == "/locks/orders" {
				return recipes.ErrDenied
			}
			return nil
		})
		_, err := s.LockServiceClient.List(s.context(), &lockv1.ListRequest{})
		same(t, "what is ours is denied", outcome(err), "PermissionDenied ENSEMBLE_DENIED")
	}, func(o *service.Options) { o.NestedLocks = true })
}

func TestListRefusesBadFields(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for want, request := range map[string]*lockv1.ListRequest{
			"InvalidArgument INVALID_FIELD prefix":     {Prefix: "a//b"},
			"InvalidArgument INVALID_FIELD page_size":  {PageSize: -1},
			"InvalidArgument INVALID_FIELD page_token": {PageToken: "bm90aGluZw"},
		} {
			_, err := s.LockServiceClient.List(s.context(), request)
			same(t, "List", outcome(err), want)
		}
	})
}

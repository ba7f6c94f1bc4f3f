package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

type carriedAssignments struct {
	assignmentv1.AssignmentServiceClient
	carriers *carriers
}

func (a carriedAssignments) Join(
	ctx context.Context, request *assignmentv1.JoinRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[assignmentv1.JoinResponse], error) {
	on := a.carriers.of(request.GetLeaseId())
	if on == nil {
		return a.AssignmentServiceClient.Join(ctx, request, options...)
	}
	request.LeaseId = ""
	return begin(ctx, on, &leasev1.Start{Request: &leasev1.Start_Share{Share: request}}, (*leasev1.Event).GetShare)
}

// A sharer is one Join stream of a set.
type sharer struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[assignmentv1.JoinResponse]
	cancel context.CancelFunc
}

func (s *scene) shares(from callers, request *assignmentv1.JoinRequest) *sharer {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	stream, err := from.assignments.Join(ctx, proto.CloneOf(request))
	s.must(err)
	return &sharer{t: s.t, stream: stream, cancel: cancel}
}

// next is the next event in words; of its items, the names, and how many members and items there are.
func (m *sharer) next() string {
	event, err := m.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch event := event.GetEvent().(type) {
	case *assignmentv1.JoinResponse_Joined:
		return "joined"
	case *assignmentv1.JoinResponse_Assigned:
		of := event.Assigned
		return fmt.Sprintf("%v of %d, %d members, %d free", of.GetItems(), of.GetTotal(), of.GetMembers(), of.GetUnassigned())
	}
	return "another event"
}

func (m *sharer) hears(want ...string) {
	m.t.Helper()
	for _, event := range want {
		same(m.t, "event", m.next(), event)
	}
}

func (s *scene) defines(request *assignmentv1.DefineRequest) string {
	_, err := s.assignments.Define(s.context(), request)
	return outcome(err)
}

// shownSet is how the set stands in words.
func (s *scene) shownSet(set string, holders bool) string {
	got, err := s.assignments.Get(s.context(), &assignmentv1.GetRequest{Set: set, Holders: holders})
	if err != nil {
		return outcome(err)
	}
	var words []string
	for _, of := range got.GetView().GetMembers() {
		words = append(words, fmt.Sprintf("%s has %d of %d", of.GetMember(), of.GetItems(), of.GetCapacity()))
	}
	for _, of := range got.GetView().GetItems() {
		word := of.GetItem() + ":" + of.GetMember()
		if of.GetHolder() != nil {
			word += "=" + of.GetHolder().GetOwner()
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func TestMembersOfASetHearOfTheirItems(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		as := func(member string) *assignmentv1.JoinRequest {
			return &assignmentv1.JoinRequest{Set: "shards", Member: member}
		}
		s.shares(s.callers, as("a")).hears("NotFound ASSIGNMENT_NOT_FOUND")
		same(t, "Define", s.defines(&assignmentv1.DefineRequest{Set: "shards", Count: 4}), "OK")
		lease := s.open(s.callers, &leasev1.OpenRequest{Owner: "ann"})
		request := as("a")
		request.LeaseId = lease.id
		a := s.shares(s.callers, request)
		a.hears("joined", "[] of 4, 1 members, 4 free", "[0 1 2 3] of 4, 1 members, 0 free")
		b := s.shares(s.others, as("b"))
		b.hears("joined", "[] of 4, 2 members, 0 free", "[2 3] of 4, 2 members, 0 free")
		a.hears("[0 1] of 4, 2 members, 0 free")
		same(t, "the lock", s.acquire(s.callers, &lockv1.AcquireRequest{Name: "shards/1", Owner: "ann", LeaseId: lease.id}).next(), "granted")
		same(t, "the set", s.shownSet("shards", true), "a has 2 of 2000, b has 2 of 2000, 0:a, 1:a=ann, 2:b, 3:b")
		b.cancel()
		a.hears("[0 1 2 3] of 4, 1 members, 0 free")
		_, err := s.assignments.Delete(s.context(), &assignmentv1.DeleteRequest{Set: "shards"})
		same(t, "Delete", outcome(err), "FailedPrecondition ASSIGNMENT_IN_USE")
		a.cancel()
	})
}

func TestAMemberThatIsDrainedLosesItsItems(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Define", s.defines(&assignmentv1.DefineRequest{Set: "mail/in", Items: []string{"x", "y"}}), "OK")
		a := s.shares(s.callers, &assignmentv1.JoinRequest{
			Set: "mail/in", Member: "a", Capacity: new(int32(5)), Metadata: map[string]string{"zone": "1"},
		})
		b := s.shares(s.others, &assignmentv1.JoinRequest{Set: "mail/in", Member: "b", Capacity: new(int32(5))})
		a.hears("joined")
		b.hears("joined")
		time.Sleep(5 * time.Second)
		same(t, "the set", s.shownSet("mail/in", false), "a has 1 of 5, b has 1 of 5, x:a, y:b")
		set := func(from callers, member string, capacity int32) string {
			_, err := from.assignments.SetCapacity(s.context(), &assignmentv1.SetCapacityRequest{Set: "mail/in", Member: member, Capacity: capacity})
			return outcome(err)
		}
		same(t, "of nobody", set(s.callers, "c", 0), "NotFound MEMBER_NOT_FOUND")
		same(t, "SetCapacity", set(s.callers, "a", 0), "OK")
		time.Sleep(5 * time.Second)
		same(t, "the set", s.shownSet("mail/in", false), "a has 0 of 0, b has 2 of 5, x:b, y:b")
		got, err := s.assignments.Get(s.context(), &assignmentv1.GetRequest{Set: "mail/in"})
		s.must(err)
		same(t, "metadata", fmt.Sprint(got.GetView().GetMembers()[0].GetMetadata()), "map[zone:1]")
		list, err := s.assignments.List(s.context(), &assignmentv1.ListRequest{Prefix: "mail"})
		s.must(err)
		same(t, "List", fmt.Sprint(list.GetSets()[0].GetSet(), list.GetSets()[0].GetItems(), list.GetSets()[0].GetMembers()), "mail/in2 2")
		same(t, "the plan's age in the list", list.GetSets()[0].GetAge().AsDuration(), got.GetView().GetAge().AsDuration())
		same(t, "no item is left over", got.GetView().GetShortFor() == nil && list.GetSets()[0].GetShortFor() == nil, true)
		same(t, "SetCapacity", set(s.others, "b", 1), "OK")
		time.Sleep(time.Minute)
		got, err = s.assignments.Get(s.context(), &assignmentv1.GetRequest{Set: "mail/in"})
		s.must(err)
		same(t, "one is left over", got.GetView().GetShortFor().AsDuration().Round(10*time.Second), time.Minute)
		same(t, "SetCapacity", set(s.others, "b", 5), "OK")
		time.Sleep(5 * time.Second)
		same(t, "an item less", s.defines(&assignmentv1.DefineRequest{Set: "mail/in", Items: []string{"x"}}), "FailedPrecondition ITEMS_ASSIGNED")
		same(t, "if it must be", s.defines(&assignmentv1.DefineRequest{Set: "mail/in", Items: []string{"x"}, Drop: true}), "OK")
		a.cancel()
		b.cancel()
	})
}

func TestASecondMemberOfANameWaits(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Define", s.defines(&assignmentv1.DefineRequest{Set: "shards", Count: 2}), "OK")
		as := &assignmentv1.JoinRequest{Set: "shards", Member: "a"}
		first := s.shares(s.callers, as)
		first.hears("joined")
		once := proto.CloneOf(as)
		once.WaitTimeout = durationpb.New(0)
		s.shares(s.others, once).hears("AlreadyExists MEMBER_EXISTS")
		brief := proto.CloneOf(as)
		brief.WaitTimeout = durationpb.New(time.Second)
		s.shares(s.others, brief).hears("DeadlineExceeded WAIT_TIMEOUT")
		second := s.shares(s.others, as)
		time.Sleep(5 * time.Second)
		first.cancel()
		second.hears("joined", "[0 1] of 2, 1 members, 0 free")
		second.cancel()
	})
}

// The set's nodes are removed by hand, though it has a member.
func TestAMemberHearsThatItsSetIsGone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Define", s.defines(&assignmentv1.DefineRequest{Set: "shards", Count: 2}), "OK")
		a := s.shares(s.callers, &assignmentv1.JoinRequest{Set: "shards", Member: "a"})
		a.hears("joined", "[] of 2, 1 members, 2 free", "[0 1] of 2, 1 members, 0 free")
		_, err := s.ensemble.Commit(s.context(), recipes.Set("/sidekeeper/assignments/shards", []byte("nonsense"), -1))
		s.must(err)
		a.hears("FailedPrecondition RECORD_MALFORMED")
	})
}

func TestSetsAreRefusedThatBreakARule(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		long := strings.Repeat("a", 64)
		for what, c := range map[string]struct {
			field   string
			request *assignmentv1.DefineRequest
		}{
			"without items":     {"count", &assignmentv1.DefineRequest{Set: "s"}},
			"both":              {"count", &assignmentv1.DefineRequest{Set: "s", Count: 1, Items: []string{"a"}}},
			"too many":          {"count", &assignmentv1.DefineRequest{Set: "s", Count: 2001}},
			"fewer than none":   {"count", &assignmentv1.DefineRequest{Set: "s", Count: -1}},
			"too many by name":  {"items", &assignmentv1.DefineRequest{Set: "s", Items: make([]string, 2001)}},
			"twice":             {"items[2]", &assignmentv1.DefineRequest{Set: "s", Items: []string{"a", "b", "a"}}},
			"two segments":      {"items[0]", &assignmentv1.DefineRequest{Set: "s", Items: []string{"a/b"}}},
			"without a name":    {"set", &assignmentv1.DefineRequest{Count: 1}},
			"with a long name":  {"set", &assignmentv1.DefineRequest{Set: long + "/" + long + "/cccccc", Count: 1}},
			"with a wrong name": {"set", &assignmentv1.DefineRequest{Set: "a b", Count: 1}},
		} {
			same(t, "Define "+what, s.defines(c.request), "InvalidArgument INVALID_FIELD "+c.field)
		}
		list, err := s.assignments.List(s.context(), &assignmentv1.ListRequest{})
		s.must(err)
		same(t, "sets", len(list.GetSets()), 0)
		for what, c := range map[string]struct {
			field   string
			request *assignmentv1.JoinRequest
		}{
			"without a member": {"member", &assignmentv1.JoinRequest{Set: "s"}},
			"with a path":      {"member", &assignmentv1.JoinRequest{Set: "s", Member: "a/b"}},
			"with too much":    {"capacity", &assignmentv1.JoinRequest{Set: "s", Member: "a", Capacity: new(int32(2001))}},
			"with too little":  {"capacity", &assignmentv1.JoinRequest{Set: "s", Member: "a", Capacity: new(int32(-1))}},
			"without a set":    {"set", &assignmentv1.JoinRequest{Member: "a"}},
		} {
			same(t, "Join "+what, s.shares(s.callers, c.request).next(), "InvalidArgument INVALID_FIELD "+c.field)
		}
	})
}

package service_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

const relaxed = sequencev1.Ordering_ORDERING_RELAXED

// makes makes a sequence that begins with 1.
func (s *scene) makes(sequence string) (incarnation int64) {
	s.t.Helper()
	made, err := s.sequences.Create(s.context(), &sequencev1.CreateRequest{Name: sequence})
	s.must(err)
	return made.GetIncarnation()
}

// next is what a call of Next sees: "first-last", or the error.
func (s *scene) next(request *sequencev1.NextRequest) string {
	s.t.Helper()
	response, err := s.sequences.Next(s.context(), request)
	if err != nil {
		return outcome(err)
	}
	return fmt.Sprintf("%d-%d", response.GetFirst(), response.GetLast())
}

// puts stores what somebody else would under a sequence's name.
func (s *scene) puts(node string, data []byte) {
	s.t.Helper()
	_, err := s.ensemble.memory.Create("/sidekeeper/sequences/"+node, data, embedded.Persistent, 0)
	s.must(err)
}

func TestSequencesHandOutNumbersAndAreDeleted(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		incarnation := s.makes("orders/eu")
		same(t, "created again", outcome(func() error {
			_, err := s.sequences.Create(s.context(), &sequencev1.CreateRequest{Name: "orders/eu"})
			return err
		}()), "AlreadyExists SEQUENCE_EXISTS")
		same(t, "first", s.next(&sequencev1.NextRequest{Name: "orders/eu"}), "1-1")
		same(t, "ten", s.next(&sequencev1.NextRequest{Name: "orders/eu", Count: proto.Int32(10)}), "2-11")
		same(t, "most", s.next(&sequencev1.NextRequest{Name: "orders/eu", Count: proto.Int32(1000000)}), "12-1000011")
		same(t, "relaxed", s.next(&sequencev1.NextRequest{Name: "orders/eu", Ordering: relaxed}), "1000012-1000012")
		got, err := s.sequences.Get(s.context(), &sequencev1.GetRequest{Name: "orders/eu"})
		s.must(err)
		if got.GetLastIssued() < 1000012 || got.GetIncarnation() != incarnation {
			t.Errorf("%+v; made %d", got, incarnation)
		}
		_, err = s.sequences.Delete(s.context(), &sequencev1.DeleteRequest{Name: "orders/eu"})
		s.must(err)
		for _, ordering := range []sequencev1.Ordering{0, relaxed} {
			seen := s.next(&sequencev1.NextRequest{Name: "orders/eu", Ordering: ordering})
			same(t, "deleted", seen, "NotFound SEQUENCE_NOT_FOUND")
		}
		if again := s.makes("orders/eu"); again <= incarnation {
			t.Errorf("incarnation %d after %d", again, incarnation)
		}
		same(t, "made again", s.next(&sequencev1.NextRequest{Name: "orders/eu", Ordering: relaxed}), "1-1")
	})
}

func TestSequencesGoOnFromNumbersThatExist(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, first := range []int64{0, -7, 1 << 40, math.MaxInt64} {
			name := "from" + strings.ReplaceAll(fmt.Sprint(first), "-", "minus")
			_, err := s.sequences.Create(s.context(), &sequencev1.CreateRequest{Name: name, First: proto.Int64(first)})
			s.must(err)
			same(t, name, s.next(&sequencev1.NextRequest{Name: name}), fmt.Sprintf("%d-%[1]d", first))
		}
		same(t, "past the end", s.next(&sequencev1.NextRequest{Name: fmt.Sprint("from", math.MaxInt64)}), "OutOfRange SEQUENCE_EXHAUSTED")
		s.puts("theirs", binary.BigEndian.AppendUint64(nil, 41))
		same(t, "theirs", s.next(&sequencev1.NextRequest{Name: "theirs"}), "42-42")
	})
}

func TestAdvancingIsForOperators(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	incarnation := s.makes("orders")
	request := &sequencev1.AdvanceToRequest{Name: "orders", LastIssued: proto.Int64(1000)}
	_, err := s.sequences.AdvanceTo(s.context(), request)
	same(t, "caller", outcome(err), "PermissionDenied OPERATOR_ONLY")
	advanced, err := s.operators.sequences.AdvanceTo(s.context(), request)
	s.must(err)
	same(t, "operator", []int64{advanced.GetLastIssued(), advanced.GetIncarnation()}, []int64{1000, incarnation})
	request.LastIssued = proto.Int64(-5)
	advanced, err = s.operators.sequences.AdvanceTo(s.context(), request)
	s.must(err)
	same(t, "back", advanced.GetLastIssued(), 1000)
	same(t, "next", s.next(&sequencev1.NextRequest{Name: "orders"}), "1001-1001")
}

func TestFieldsOfSequencesAreChecked(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.makes("orders")
		zookeeper := s.ensemble.memory.Zxid()
		tests := map[string]error{
			"name of next":    second(s.sequences.Next(s.context(), &sequencev1.NextRequest{})),
			"name of create":  second(s.sequences.Create(s.context(), &sequencev1.CreateRequest{Name: "../orders"})),
			"name of get":     second(s.sequences.Get(s.context(), &sequencev1.GetRequest{Name: "a//b"})),
			"name of delete":  second(s.sequences.Delete(s.context(), &sequencev1.DeleteRequest{Name: "zookeeper"})),
			"name of advance": second(s.operators.sequences.AdvanceTo(s.context(), &sequencev1.AdvanceToRequest{Name: "a b"})),
			"count 0":         second(s.sequences.Next(s.context(), &sequencev1.NextRequest{Name: "orders", Count: proto.Int32(0)})),
			"count negative":  second(s.sequences.Next(s.context(), &sequencev1.NextRequest{Name: "orders", Count: proto.Int32(-1)})),
			"count too large": second(s.sequences.Next(s.context(), &sequencev1.NextRequest{Name: "orders", Count: proto.Int32(1000001)})),
			"ordering":        second(s.sequences.Next(s.context(), &sequencev1.NextRequest{Name: "orders", Ordering: 9})),
			"first":           second(s.sequences.Create(s.context(), &sequencev1.CreateRequest{Name: "more", First: proto.Int64(math.MinInt64)})),
			"last_issued":     second(s.operators.sequences.AdvanceTo(s.context(), &sequencev1.AdvanceToRequest{Name: "orders"})),
			"prefix":          second(s.sequences.List(s.context(), &sequencev1.ListRequest{Prefix: "/"})),
			"page_size":       second(s.sequences.List(s.context(), &sequencev1.ListRequest{PageSize: 1001})),
			"page_token":      second(s.sequences.List(s.context(), &sequencev1.ListRequest{PageToken: "x"})),
		}
		for field, err := range tests {
			word, _, _ := strings.Cut(field, " ")
			same(t, field, outcome(err), "InvalidArgument INVALID_FIELD "+word)
		}
		same(t, "transactions", s.ensemble.memory.Zxid(), zookeeper)
	})
}

func second[T any](_ T, err error) error { return err }

func TestWhatIsNoSequenceIsLeftAlone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.puts("text", []byte("12345679"))
		s.makes("parent")
		s.puts("parent/theirs", nil)
		malformed := "FailedPrecondition SEQUENCE_MALFORMED"
		same(t, "next", s.next(&sequencev1.NextRequest{Name: "text"}), malformed)
		same(t, "get", outcome(second(s.sequences.Get(s.context(), &sequencev1.GetRequest{Name: "text"}))), malformed)
		same(t, "delete", outcome(second(s.sequences.Delete(s.context(), &sequencev1.DeleteRequest{Name: "text"}))), malformed)
		same(t, "advance", outcome(second(s.operators.sequences.AdvanceTo(s.context(),
			&sequencev1.AdvanceToRequest{Name: "text", LastIssued: proto.Int64(1)}))), malformed)
		same(t, "delete of a parent", outcome(second(s.sequences.Delete(s.context(), &sequencev1.DeleteRequest{Name: "parent"}))),
			"FailedPrecondition NAME_IS_DIRECTORY")
		for _, call := range []error{
			second(s.sequences.Get(s.context(), &sequencev1.GetRequest{Name: "none"})),
			second(s.sequences.Delete(s.context(), &sequencev1.DeleteRequest{Name: "none"})),
			second(s.operators.sequences.AdvanceTo(s.context(), &sequencev1.AdvanceToRequest{Name: "none", LastIssued: proto.Int64(1)})),
		} {
			same(t, "missing", outcome(call), "NotFound SEQUENCE_NOT_FOUND")
		}
	})
}

func TestASequenceThatWasSetBackIsRefusedUntilAnOperatorHasAdvancedIt(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.makes("orders")
		same(t, "ten", s.next(&sequencev1.NextRequest{Name: "orders", Count: proto.Int32(10)}), "1-10")
		s.must(s.ensemble.memory.Set("/sidekeeper/sequences/orders", binary.BigEndian.AppendUint64(nil, 3)))
		for _, ordering := range []sequencev1.Ordering{0, relaxed} {
			seen := s.next(&sequencev1.NextRequest{Name: "orders", Ordering: ordering})
			same(t, "set back", seen, "FailedPrecondition SEQUENCE_MALFORMED")
		}
		_, err := s.operators.sequences.AdvanceTo(s.context(), &sequencev1.AdvanceToRequest{Name: "orders", LastIssued: proto.Int64(10)})
		s.must(err)
		same(t, "advanced", s.next(&sequencev1.NextRequest{Name: "orders"}), "11-11")
	})
}

func TestASequenceThatWasSetBackIsRefusedWhateverGuardsACall(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		one := r.hold(r.callers, &lockv1.AcquireRequest{Name: "one"})
		other := r.hold(r.callers, &lockv1.AcquireRequest{Name: "other"})
		calls := [][]*holdv1.Guard{{byHold(one.hold)}, nil, {byHold(other.hold)}}
		for round, first := range calls {
			sequence := fmt.Sprint("orders", round)
			r.makes(sequence)
			same(t, "ten", r.next(&sequencev1.NextRequest{Name: sequence, Count: proto.Int32(10), Guards: first}), "1-10")
			r.must(r.ensemble.memory.Set("/sidekeeper/sequences/"+sequence, binary.BigEndian.AppendUint64(nil, 3)))
			for _, guards := range calls {
				seen := r.next(&sequencev1.NextRequest{Name: sequence, Guards: guards})
				same(t, "set back", seen, "FailedPrecondition SEQUENCE_MALFORMED")
			}
		}
	})
}

func TestSequencesAreListedByNameInPages(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, name := range []string{"shop", "shop/eu", "shopping", "bar"} {
			s.makes(name)
		}
		s.puts("text", []byte("12"))
		s.puts("not a name", nil)
		s.next(&sequencev1.NextRequest{Name: "shop", Count: proto.Int32(7)})
		list := func(request *sequencev1.ListRequest) (lines []string) {
			for {
				page, err := s.sequences.List(s.context(), request)
				s.must(err)
				for _, sequence := range page.GetSequences() {
					lines = append(lines, fmt.Sprint(sequence.GetName(), " ", sequence.GetLastIssued(), " ", sequence.GetMalformed(), " ",
						sequence.GetIncarnation() > 0))
				}
				if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
					return lines
				}
			}
		}
		want := []string{"bar 0 false true", "shop 7 false true", "shop/eu 0 false true", "shopping 0 false true", "text 0 true true"}
		for _, size := range []int32{0, 1, 2, 5} {
			same(t, "all", list(&sequencev1.ListRequest{PageSize: size}), want)
			same(t, "below shop", list(&sequencev1.ListRequest{PageSize: size, Prefix: "shop"}), want[1:3])
		}
	})
}

func TestCallersOfOneSidecarGetDifferentNumbers(t *testing.T) {
	t.Parallel()
	for _, ordering := range []sequencev1.Ordering{0, relaxed} {
		s := newScene(t)
		s.makes("orders")
		s.ensemble.Delay(time.Millisecond)
		var mu sync.Mutex
		var all []int64
		var group sync.WaitGroup
		for range 32 {
			group.Go(func() {
				for range 50 {
					response, err := s.sequences.Next(s.context(), &sequencev1.NextRequest{Name: "orders", Ordering: ordering})
					if err != nil {
						t.Errorf("%v", err)
						return
					}
					mu.Lock()
					all = append(all, response.GetFirst())
					mu.Unlock()
				}
			})
		}
		group.Wait()
		slices.Sort(all)
		if got := len(slices.Compact(all)); got != 32*50 {
			t.Errorf("%v: %d different numbers", ordering, got)
		}
		if writes := s.ensemble.Count("Commit"); writes > 32*50/4 {
			t.Errorf("%v: %d writes for %d numbers", ordering, writes, 32*50)
		}
	}
}

func TestNextEndsWhenTheSidecarStopsOrTheEnsembleIsAway(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.makes("orders")
		s.ensemble.Before(func(o standin.Operation) error {
			if o.Name == "Commit" {
				return recipes.ErrUnreachable
			}
			return nil
		})
		same(t, "away", s.next(&sequencev1.NextRequest{Name: "orders"}), "Unavailable ENSEMBLE_UNREACHABLE")
		same(t, "away, relaxed", s.next(&sequencev1.NextRequest{Name: "orders", Ordering: relaxed}), "Unavailable ENSEMBLE_UNREACHABLE")
		s.ensemble.Before(nil)

		sent := make(chan struct{})
		var once sync.Once
		s.ensemble.Before(func(o standin.Operation) error {
			if o.Name == "Commit" {
				once.Do(func() { close(sent) })
			}
			return nil
		})
		s.ensemble.Delay(time.Hour)
		s.ensemble.memory.SetVersion("/sidekeeper/sequences/orders", 0)
		seen := make(chan string, 2)
		go func() { seen <- s.next(&sequencev1.NextRequest{Name: "orders"}) }()
		go func() { seen <- s.next(&sequencev1.NextRequest{Name: "orders", Ordering: relaxed}) }()
		waitUntil(t, func() bool { return service.SequenceUsers(s.services, "orders") == 2 })
		drained := s.drain(time.Millisecond)
		same(t, "waiting", []string{<-seen, <-seen}, []string{"Unavailable SIDECAR_STOPPING", "Unavailable SIDECAR_STOPPING"})
		s.must(<-drained)
		same(t, "later", s.next(&sequencev1.NextRequest{Name: "orders"}), "Unavailable SIDECAR_STOPPING")
		same(t, "later", outcome(second(s.sequences.Get(s.context(), &sequencev1.GetRequest{Name: "orders"}))), "Unavailable SIDECAR_STOPPING")
	})
}

func waitUntil(t *testing.T, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it does not come to that")
		}
	}
}

func TestSequencesThatTheEnsembleDeniesAreSaidToBe(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.makes("orders")
		s.must(s.ensemble.memory.Deny("/sidekeeper/sequences/orders", true))
		for ordering := range sequencev1.Ordering_name {
			seen := s.next(&sequencev1.NextRequest{Name: "orders", Ordering: sequencev1.Ordering(ordering)})
			same(t, "next", seen, "PermissionDenied ENSEMBLE_DENIED")
		}
		for _, err := range []error{
			second(s.sequences.Get(s.context(), &sequencev1.GetRequest{Name: "orders"})),
			second(s.sequences.Delete(s.context(), &sequencev1.DeleteRequest{Name: "orders"})),
			second(s.sequences.List(s.context(), &sequencev1.ListRequest{})),
			second(s.operators.sequences.AdvanceTo(s.context(), &sequencev1.AdvanceToRequest{Name: "orders", LastIssued: proto.Int64(1)})),
		} {
			same(t, "others", outcome(err), "PermissionDenied ENSEMBLE_DENIED")
		}
		s.must(s.ensemble.memory.Deny("/sidekeeper/sequences", true))
		_, err := s.sequences.Create(s.context(), &sequencev1.CreateRequest{Name: "more"})
		same(t, "create", outcome(err), "PermissionDenied ENSEMBLE_DENIED")
	})
}

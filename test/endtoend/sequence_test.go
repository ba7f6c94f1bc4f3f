package endtoend

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/protobuf/proto"

	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

func (s *sidecar) sequences() sequencev1.SequenceServiceClient {
	return sequencev1.NewSequenceServiceClient(s.connection)
}

// sequenceFor makes a sequence that no test has used, and returns its name.
func sequenceFor(t *testing.T, through *sidecar) string {
	t.Helper()
	name := fmt.Sprint("endtoend/", now())
	_, err := through.sequences().Create(t.Context(), &sequencev1.CreateRequest{Name: name})
	must(t, err)
	return name
}

func next(t *testing.T, through *sidecar, request *sequencev1.NextRequest) *sequencev1.NextResponse {
	t.Helper()
	response, err := through.sequences().Next(t.Context(), request)
	must(t, err)
	return response
}

func TestASequenceIsTheSameThroughEverySidecar(t *testing.T) {
	sidecars := quickSidecars(t, 2)
	one, two := sidecars[0], sidecars[1]
	name := sequenceFor(t, one)
	ten := next(t, two, &sequencev1.NextRequest{Name: name, Count: proto.Int32(10)})
	if ten.GetFirst() < 1 || ten.GetLast() != ten.GetFirst()+9 {
		t.Errorf("%v", ten)
	}
	if got := next(t, one, &sequencev1.NextRequest{Name: name}); got.GetFirst() <= ten.GetLast() { // where a reply was lost, numbers are skipped
		t.Errorf("%v after %v", got, ten)
	}
	operators := sequencev1.NewSequenceServiceClient(dial(t, two.operatorAddress()))
	advanced, err := operators.AdvanceTo(t.Context(), &sequencev1.AdvanceToRequest{Name: name, LastIssued: proto.Int64(1 << 40)})
	must(t, err)
	state, err := one.sequences().Get(t.Context(), &sequencev1.GetRequest{Name: name})
	must(t, err)
	if state.GetLastIssued() != 1<<40 || state.GetIncarnation() != advanced.GetIncarnation() {
		t.Errorf("%v after %v", state, advanced)
	}
	list, err := two.sequences().List(t.Context(), &sequencev1.ListRequest{Prefix: name})
	must(t, err)
	if all := list.GetSequences(); len(all) != 1 || all[0].GetName() != name || all[0].GetMalformed() {
		t.Errorf("%v", all)
	}
	_, err = two.sequences().Create(t.Context(), &sequencev1.CreateRequest{Name: name})
	expect(t, "AlreadyExists SEQUENCE_EXISTS", err)
	_, err = one.sequences().Next(t.Context(), &sequencev1.NextRequest{Name: name, Count: proto.Int32(-1)})
	expect(t, "InvalidArgument INVALID_FIELD", err)
}

func TestNumbersOfADeletedSequenceAreNotHandedOut(t *testing.T) {
	sidecars := quickSidecars(t, 2)
	one, two := sidecars[0], sidecars[1]
	name := sequenceFor(t, one)
	relaxed := &sequencev1.NextRequest{Name: name, Ordering: sequencev1.Ordering_ORDERING_RELAXED}
	old := next(t, two, relaxed)
	for ordering := range sequencev1.Ordering_name {
		_, err := one.sequences().Delete(t.Context(), &sequencev1.DeleteRequest{Name: name})
		must(t, err)
		made, err := one.sequences().Create(t.Context(), &sequencev1.CreateRequest{Name: name, First: proto.Int64(5000)})
		must(t, err)
		// A reserve is dropped when the sidecar hears of it: its reader may be a little late.
		request := &sequencev1.NextRequest{Name: name, Ordering: sequencev1.Ordering(ordering)}
		for got := next(t, two, request); got.GetIncarnation() != made.GetIncarnation(); got = next(t, two, request) {
			if ordering != int32(relaxed.GetOrdering()) || got.GetIncarnation() != old.GetIncarnation() || got.GetFirst() <= old.GetLast() {
				t.Fatalf("%v of an old incarnation; made %v", got, made)
			}
			old = got
		}
		old = next(t, two, relaxed)
	}
	_, err := one.sequences().Delete(t.Context(), &sequencev1.DeleteRequest{Name: name})
	must(t, err)
	_, err = two.sequences().Next(t.Context(), &sequencev1.NextRequest{Name: name})
	expect(t, "NotFound SEQUENCE_NOT_FOUND", err)
}

// isMulti finds the writes of sequences.
func isMulti(f link.Frame) bool { return f.Opcode == link.Multi }

func TestAReplyThatIsLostSkipsNumbers(t *testing.T) {
	e := ensembleOf(t, quickTick)
	s := startSidecar(t, quick(e))
	name := sequenceFor(t, s)
	first := next(t, s, &sequencev1.NextRequest{Name: name})
	var traps []*link.Trap
	for _, server := range e.Servers() {
		traps = append(traps, server.ClientLink().CutReply(isMulti, 1))
	}
	second := next(t, s, &sequencev1.NextRequest{Name: name})
	cut := 0
	for _, trap := range traps {
		cut += trap.Count()
		trap.Release()
	}
	if cut == 0 || second.GetFirst() <= first.GetLast()+1 {
		t.Errorf("%v after %v, with %d replies cut", second, first, cut)
	}
}

func TestASequenceThatAnotherProgramStoredGoesOn(t *testing.T) {
	e := ensembleOf(t, quickTick)
	s := startSidecar(t, quick(e))
	direct := connect(t, e)
	name := fmt.Sprint("counter-", now())
	path := "/sidekeeper/sequences/" + name
	_, err := direct.Create(path, []byte{0, 0, 0, 0, 0, 0, 1, 0}, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	if got := next(t, s, &sequencev1.NextRequest{Name: name}); got.GetFirst() != 257 {
		t.Errorf("%v", got)
	}
	_, err = direct.Sync(path) // its server may be behind
	must(t, err)
	_, stat, err := direct.Get(path)
	must(t, err)
	_, err = direct.Set(path, []byte{0, 0, 0, 0, 0, 0, 2, 0}, stat.Version)
	must(t, err)
	if got := next(t, s, &sequencev1.NextRequest{Name: name}); got.GetFirst() != 513 {
		t.Errorf("%v", got)
	}
	_, err = direct.Set(path, []byte("514"), -1)
	must(t, err)
	_, err = s.sequences().Next(t.Context(), &sequencev1.NextRequest{Name: name})
	expect(t, "FailedPrecondition SEQUENCE_MALFORMED", err)
}

func TestAnEnsembleThatIsAwayIsToldInTime(t *testing.T) {
	e := ensembleOf(t, quickTick)
	s := startSidecar(t, setup{servers: e.ClientAddresses(), tick: quickTick, timeout: 3 * time.Second})
	name := sequenceFor(t, s)
	next(t, s, &sequencev1.NextRequest{Name: name})
	for _, server := range e.Servers() {
		server.ClientLink().Drop()
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), patient, errors.New("no answer"))
	defer cancel()
	began := time.Now()
	_, err := s.sequences().Next(ctx, &sequencev1.NextRequest{Name: name})
	expect(t, "Unavailable ENSEMBLE_UNREACHABLE", err)
	t.Logf("told after %v", time.Since(began))
}

package service_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/test/bufconn"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// beside is another sidecar on the same ensemble.
func (s *scene) beside() *scene {
	other := s.unserved()
	other.serveOnSockets()
	other.callers = other.dial("unix:" + other.socket)
	return other
}

// besideWithin is likewise one where time is virtual.
func (s *scene) besideWithin() *scene {
	other := s.unserved()
	other.memory = bufconn.Listen(pipe)
	other.serve(serverSettings{Inside: other.memory})
	other.callers = other.dial(within)
	return other
}

func (s *scene) unserved() *scene {
	other := &scene{t: s.t, options: s.options, ensemble: &sceneEnsemble{
		Reader: s.ensemble.memory.NewReader(), memory: s.ensemble.memory, opened: make(chan *standin.Session, 2000),
	}}
	other.services = service.New(s.options, other.ensemble)
	return other
}

func (s *scene) awaitCircle(from callers, request *lockv1.ExplainRequest) *lockv1.ExplainResponse {
	s.t.Helper()
	for ctx := s.context(); ; {
		explained, err := from.Explain(ctx, request)
		s.must(err)
		if len(explained.GetCycles()) > 0 {
			return explained
		}
	}
}

func TestAnExplanationIsOfOneLockOrOneLease(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, test := range []struct {
			request *lockv1.ExplainRequest
			want    string
		}{
			{&lockv1.ExplainRequest{}, "InvalidArgument INVALID_FIELD name"},
			{&lockv1.ExplainRequest{Name: "orders", Lease: "0123abcd"}, "InvalidArgument INVALID_FIELD lease"},
			{&lockv1.ExplainRequest{Lease: "0123ABCD"}, "InvalidArgument INVALID_FIELD lease"},
			{&lockv1.ExplainRequest{Lease: "0123abcd"}, "NotFound LEASE_NOT_FOUND"},
			{&lockv1.ExplainRequest{Name: "orders"}, "OK"},
		} {
			_, err := s.callers.Explain(s.context(), test.request)
			same(t, test.request.String(), outcome(err), test.want)
		}
	})
}

func TestACircleIsExplainedThroughEachSidecar(t *testing.T) {
	t.Parallel()
	s, lease := newScene(t), [3]string{}
	for i := range lease {
		lease[i] = s.open(s.callers, &leasev1.OpenRequest{Owner: fmt.Sprint("caller ", i)}).id
		s.hold(s.callers, &lockv1.AcquireRequest{Name: fmt.Sprint("lock-", i), LeaseId: lease[i]})
	}
	for i := range lease {
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: fmt.Sprint("lock-", (i+1)%3), LeaseId: lease[i]}).sees("queued 1")
	}
	beside := s.beside()
	for _, from := range []callers{s.callers, beside.callers} {
		explained := s.awaitCircle(from, &lockv1.ExplainRequest{Name: "lock-1"})
		var circle []string
		for _, link := range explained.GetCycles()[0].GetLinks() {
			circle = append(circle, link.GetOwner()+" waits for "+link.GetWaitsFor())
		}
		same(t, "circle", strings.Join(circle, ", "),
			"caller 1 waits for lock-2, caller 2 waits for lock-0, caller 0 waits for lock-1")
		same(t, "whose suspension is known", explained.GetLocks()[0].GetHolders()[0].Suspended != nil, from == s.callers)
		number := explained.GetCycles()[0].GetLinks()[2].GetLease()
		same(t, "first lock of a lease's", s.awaitCircle(from, &lockv1.ExplainRequest{Lease: number}).GetLocks()[0].GetName(), "lock-1")
	}
}

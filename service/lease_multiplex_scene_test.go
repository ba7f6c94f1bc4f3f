package service_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
)

// While multiplexed, the callers of all scenes open their leases by Multiplex, and have on its stream what they begin over the connection
// that the lease was opened over.
var multiplexed bool

// runTwice runs the tests, then multiplexed those that have opened a lease, each of which notes itself.
func runTwice(run func() int) (code int) {
	if code = run(); code != 0 || len(openers.tests) == 0 {
		return code
	}
	fmt.Fprintf(os.Stdout, "again over the lease's stream: %d tests\n", len(openers.tests))
	multiplexed = true
	if err := flag.Set("test.run", "^("+strings.Join(slices.Collect(maps.Keys(openers.tests)), "|")+")$"); err != nil {
		panic(err)
	}
	return run()
}

// openers are the tests that have opened a lease, as a set.
var openers struct {
	sync.Mutex
	tests map[string]bool
}

// A noting client notes the test that opens a lease.
type noting struct {
	leasev1.LeaseServiceClient
	test string
}

// Open implements leasev1.LeaseServiceClient.
func (n noting) Open(
	ctx context.Context, request *leasev1.OpenRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[leasev1.OpenResponse], error) {
	openers.Lock()
	if openers.tests == nil {
		openers.tests = map[string]bool{}
	}
	openers.tests[n.test] = true
	openers.Unlock()
	return n.LeaseServiceClient.Open(ctx, request, options...)
}

// carriers are the leases' streams of one connection, by lease.
type carriers struct {
	leasev1.LeaseServiceClient

	mu    sync.Mutex
	known map[string]*carrier
}

// A carrier is a lease's stream, shown as the stream of Open and those of single calls.
type carrier struct {
	stream grpc.BidiStreamingClient[leasev1.MultiplexRequest, leasev1.MultiplexResponse]
	lease  *replayed[leasev1.OpenResponse]

	mu       sync.Mutex
	newest   uint64
	requests map[uint64]*carried
	over     error
}

// A carried is one request: what gets its events, its connectivity and its end.
type carried struct {
	event func(*leasev1.Event)
	state func(*leasev1.MultiplexResponse)
	end   func(error)
	holds bool
}

// A replayed is a stream as the tests read it.
type replayed[M any] struct {
	grpc.ClientStream

	ctx    context.Context
	stop   func() // says that its caller has cancelled it
	mu     sync.Mutex
	news   chan struct{}
	events []*M
	err    error
}

func newReplayed[M any](ctx context.Context) *replayed[M] {
	return &replayed[M]{ctx: ctx, stop: func() {}, news: make(chan struct{}, 1)}
}

func (s *replayed[M]) add(event *M, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
	case event != nil:
		s.events = append(s.events, event)
	default:
		s.err = err
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// Recv implements grpc.ServerStreamingClient.
func (s *replayed[M]) Recv() (*M, error) {
	for {
		s.mu.Lock()
		if len(s.events) > 0 {
			first := s.events[0]
			s.events = s.events[1:]
			s.mu.Unlock()
			return first, nil
		}
		err := s.err
		s.mu.Unlock()
		switch {
		case err != nil && s.ctx.Err() != nil: // whoever cancels a call is not told how it has ended
			return nil, s.cancelled()
		case err != nil:
			return nil, err
		}
		select {
		case <-s.news:
		case <-s.ctx.Done():
			return nil, s.cancelled()
		}
	}
}

// cancelled is the end of a call for who has cancelled it; what he begins next comes after it.
func (s *replayed[M]) cancelled() error {
	s.stop()
	return status.FromContextError(s.ctx.Err()).Err()
}

// Open opens a lease whose stream carries all that is begun with it.
func (c *carriers) Open(
	ctx context.Context, request *leasev1.OpenRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[leasev1.OpenResponse], error) {
	stream, err := c.Multiplex(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: request}}); err != nil {
		return nil, err
	}
	made := &carrier{stream: stream, lease: newReplayed[leasev1.OpenResponse](ctx), requests: map[uint64]*carried{}}
	go made.read(c)
	return made.lease, nil
}

func (c *carrier) read(known *carriers) {
	for {
		message, err := c.stream.Recv()
		if err != nil {
			c.end(err)
			return
		}
		switch of := message.GetResponse().(type) {
		case *leasev1.MultiplexResponse_Opened:
			known.mu.Lock()
			known.known[of.Opened.GetLeaseId()] = c
			known.mu.Unlock()
			c.lease.add(inEvent[leasev1.OpenResponse]("opened", of.Opened), nil)
		case *leasev1.MultiplexResponse_Suspended:
			c.lease.add(inEvent[leasev1.OpenResponse]("suspended", of.Suspended), nil)
			c.each(message)
		case *leasev1.MultiplexResponse_Resumed:
			c.lease.add(inEvent[leasev1.OpenResponse]("resumed", of.Resumed), nil)
			c.each(message)
		case *leasev1.MultiplexResponse_Event:
			if found := c.find(of.Event.GetRequestId()); found != nil {
				found.event(of.Event)
			}
		case *leasev1.MultiplexResponse_Ended:
			if found := c.find(of.Ended.GetRequestId()); found != nil {
				found.end(statusIn(of.Ended))
			}
		}
	}
}

func (c *carrier) find(id uint64) *carried {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[id]
}

func (c *carrier) each(message *leasev1.MultiplexResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.requests {
		if request.holds {
			request.state(message)
		}
	}
}

func (c *carrier) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = err
	c.lease.add(nil, err)
	for _, request := range c.requests {
		request.end(err)
	}
}

// statusIn is the status that an end stands for.
func statusIn(ended *leasev1.Ended) error {
	if ended.GetCode() == 0 {
		return io.EOF
	}
	told := status.New(codes.Code(ended.GetCode()), ended.GetMessage())
	if ended.GetReason() != "" {
		told, _ = told.WithDetails(&errdetails.ErrorInfo{Reason: ended.GetReason(), Domain: "sidekeeper", Metadata: ended.GetMetadata()})
	}
	return told.Err()
}

// inEvent is a response whose event is this one.
func inEvent[M any](field protoreflect.Name, event proto.Message) *M {
	made := new(M)
	message := any(made).(proto.Message).ProtoReflect()
	message.Set(message.Descriptor().Fields().ByName(field), protoreflect.ValueOfMessage(event.ProtoReflect()))
	return made
}

// begin starts a request, which ends when ctx does.
func begin[M any](
	ctx context.Context, c *carrier, start *leasev1.Start, eventIn func(*leasev1.Event) *M,
) (*replayed[M], error) {
	made := newReplayed[M](ctx)
	request := &carried{end: func(err error) { made.add(nil, err) }}
	request.state = func(m *leasev1.MultiplexResponse) {
		if of := m.GetSuspended(); of != nil {
			made.add(inEvent[M]("suspended", of), nil)
		} else {
			made.add(inEvent[M]("resumed", m.GetResumed()), nil)
		}
	}
	request.event = func(event *leasev1.Event) {
		c.mu.Lock()
		request.holds = request.holds || event.GetAcquire().GetGranted() != nil || event.GetJoin().GetJoined() != nil ||
			event.GetAcquirePermits().GetGranted() != nil || event.GetAcquireAll().GetGranted() != nil || event.GetCampaign().GetElected() != nil ||
			event.GetEnter().GetEntered() != nil || event.GetBegin().GetBegun() != nil ||
			event.GetWork().GetFire() != nil
		c.mu.Unlock()
		made.add(eventIn(event), nil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest++
	start.RequestId = c.newest
	c.requests[start.GetRequestId()] = request
	err := c.stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}})
	made.stop = sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = c.stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: start.GetRequestId()}}})
	})
	context.AfterFunc(ctx, made.stop)
	return made, err
}

func (c *carriers) of(lease string) *carrier {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.known[lease]
	if found == nil || found.isOver() {
		return nil
	}
	return found
}

func (c *carrier) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over != nil
}

// over is what the tests see over single streams and, instead, over a lease's.
func over(single, lease string) string {
	if multiplexed {
		return lease
	}
	return single
}

type carriedLocks struct {
	lockv1.LockServiceClient
	carriers *carriers
}

func (l carriedLocks) Acquire(
	ctx context.Context, request *lockv1.AcquireRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[lockv1.AcquireResponse], error) {
	on := l.carriers.of(request.GetLeaseId())
	if on == nil {
		return l.LockServiceClient.Acquire(ctx, request, options...)
	}
	request.LeaseId = ""
	return begin(ctx, on, &leasev1.Start{Request: &leasev1.Start_Acquire{Acquire: request}}, (*leasev1.Event).GetAcquire)
}

// AcquireAll carries several locks.
func (l carriedLocks) AcquireAll(
	ctx context.Context, request *lockv1.AcquireAllRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[lockv1.AcquireAllResponse], error) {
	on := l.carriers.of(request.GetLeaseId())
	if on == nil {
		return l.LockServiceClient.AcquireAll(ctx, request, options...)
	}
	request.LeaseId = ""
	return begin(ctx, on, &leasev1.Start{Request: &leasev1.Start_AcquireAll{AcquireAll: request}}, (*leasev1.Event).GetAcquireAll)
}

type carriedGroups struct {
	membershipv1.MembershipServiceClient
	carriers *carriers
}

func (g carriedGroups) Join(
	ctx context.Context, request *membershipv1.JoinRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[membershipv1.JoinResponse], error) {
	on := g.carriers.of(request.GetLeaseId())
	if on == nil {
		return g.MembershipServiceClient.Join(ctx, request, options...)
	}
	request.LeaseId = ""
	return begin(ctx, on, &leasev1.Start{Request: &leasev1.Start_Join{Join: request}}, (*leasev1.Event).GetJoin)
}

type carriedSemaphores struct {
	semaphorev1.SemaphoreServiceClient
	carriers *carriers
}

func (p carriedSemaphores) Acquire(
	ctx context.Context, request *semaphorev1.AcquireRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[semaphorev1.AcquireResponse], error) {
	on := p.carriers.of(request.GetLeaseId())
	if on == nil {
		return p.SemaphoreServiceClient.Acquire(ctx, request, options...)
	}
	request.LeaseId = ""
	start := &leasev1.Start{Request: &leasev1.Start_AcquirePermits{AcquirePermits: request}}
	return begin(ctx, on, start, (*leasev1.Event).GetAcquirePermits)
}

type carriedElections struct {
	electionv1.ElectionServiceClient
	carriers *carriers
}

func (e carriedElections) Campaign(
	ctx context.Context, request *electionv1.CampaignRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[electionv1.CampaignResponse], error) {
	on := e.carriers.of(request.GetLeaseId())
	if on == nil {
		return e.ElectionServiceClient.Campaign(ctx, request, options...)
	}
	request.LeaseId = ""
	start := &leasev1.Start{Request: &leasev1.Start_Campaign{Campaign: request}}
	return begin(ctx, on, start, (*leasev1.Event).GetCampaign)
}

type carriedBarriers struct {
	barrierv1.BarrierServiceClient
	carriers *carriers
}

func (b carriedBarriers) Enter(
	ctx context.Context, request *barrierv1.EnterRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[barrierv1.EnterResponse], error) {
	on := b.carriers.of(request.GetLeaseId())
	if on == nil {
		return b.BarrierServiceClient.Enter(ctx, request, options...)
	}
	request.LeaseId = ""
	return begin(ctx, on, &leasev1.Start{Request: &leasev1.Start_Enter{Enter: request}}, (*leasev1.Event).GetEnter)
}

type carriedWork struct {
	oncev1.OnceServiceClient
	carriers *carriers
}

func (w carriedWork) Begin(
	ctx context.Context, request *oncev1.BeginRequest, options ...grpc.CallOption,
) (grpc.ServerStreamingClient[oncev1.BeginResponse], error) {
	on := w.carriers.of(request.GetLeaseId())
	if on == nil {
		return w.OnceServiceClient.Begin(ctx, request, options...)
	}
	request.LeaseId = ""
	return begin(ctx, on, &leasev1.Start{Request: &leasev1.Start_Begin{Begin: request}}, (*leasev1.Event).GetBegin)
}

// carried has what these callers begin on a lease stand on its stream, while multiplexed.
func (c callers) carried(t *testing.T) callers {
	t.Helper()
	if !multiplexed {
		test, _, _ := strings.Cut(t.Name(), "/")
		c.leases = noting{c.leases, test}
		return c
	}
	all := &carriers{LeaseServiceClient: c.leases, known: map[string]*carrier{}}
	c.LockServiceClient = carriedLocks{c.LockServiceClient, all}
	c.groups = carriedGroups{c.groups, all}
	c.semaphores = carriedSemaphores{c.semaphores, all}
	c.barriers = carriedBarriers{c.barriers, all}
	c.elections = carriedElections{c.elections, all}
	c.once = carriedWork{c.once, all}
	c.schedules = carriedSchedules{c.schedules, all}
	c.assignments = carriedAssignments{c.assignments, all}
	c.leases = all
	return c
}

package service

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
)

// mostUnsent is how many answers may wait for a caller that asks and does not read.
const mostUnsent = 4096

// A multiplex is a lease's stream that carries all that stands on it. Each request runs as its single call would: through what calls go
// through, as a held stream on the lease, with a drawer of the one outbox in place of an outbox of its own.
type multiplex struct {
	leases *leaseService
	stream grpc.BidiStreamingServer[leasev1.MultiplexRequest, leasev1.MultiplexResponse]
	ctx    context.Context //nolint:containedctx // of the stream
	lease  *lease
	over   over      // of the stream, and with it of its requests
	shared time.Time // when nobody counts any more who asked an earlier process over a connection of its own; zero if nobody did
	box    *outbox.Outbox[*leasev1.MultiplexResponse]
	unread over // when its messages are not read any more

	mu       sync.Mutex
	last     int                 // number of the newest request
	requests map[uint64]*started // those that have not gone
	settled  bool                // nothing starts any more
	silent   bool                // nothing is told any more

	telling sync.WaitGroup // requests whose end has not been told
	running sync.WaitGroup // requests that have not gone
}

// A started is one request on a lease's stream.
type started struct {
	*multiplex

	id      uint64
	number  int         // of the request on the stream, for its topics
	claim   *claim      // what it was before the sidecar was started
	inHand  bool        // its stream lets go of what is claimed
	endedAs *hold       // as which a claim has ended that is not held again; nil for none
	life    machine.ID  // to the lease's machine
	over    over        // of the request
	stopped *latch      // closed when the caller has given it up or acknowledged its end, here or by Release
	asked   atomic.Bool // whether it has done so here
}

type startedKey struct{}

// startedOf is the request of a lease's stream that ctx belongs to; nil if it is a call of its own.
func startedOf(ctx context.Context) *started {
	of, _ := ctx.Value(startedKey{}).(*started)
	return of
}

// Multiplex is Open, with everything that stands on the lease.
func (l *leaseService) Multiplex(stream grpc.BidiStreamingServer[leasev1.MultiplexRequest, leasev1.MultiplexResponse]) error {
	began := time.Now()
	first, err := run(stream.Recv).wait() // not on this goroutine's stack, which would have to be of 16 KiB for it, and not of 8
	switch {
	case errors.Is(err, io.EOF):
		return invalid("open", "", "the first message")
	case err != nil:
		return err
	case first.GetOpen() == nil && first.GetResume() == nil:
		return invalid("request", "", "open or resume in the first message")
	}
	m := &multiplex{leases: l, stream: stream, ctx: stream.Context(), requests: map[uint64]*started{}}
	m.unread = newOver(m.ctx)
	m.box, m.over = newOutbox(m.unread, stream.Send), newOver(m.unread.ctx)
	goOn := func() (decide func()) { return func() {} }
	if first.GetOpen() != nil {
		err = m.open(first.GetOpen())
	} else {
		goOn, err = m.resume(first.GetResume())
	}
	if err != nil {
		return err
	}
	asked := make(chan error, 2) // for two who may
	caller.PermissionOf(m.ctx).Ends(func(why error) { asked <- why })
	kept := &leaseStream[*leasev1.MultiplexResponse]{
		services: l.services, began: began, lease: m.lease, over: m.over, box: m.box, words: multiplexWords,
		asked: asked, closing: m.letGo, settled: m.settle, after: m.running.Wait,
	}
	kept.announce()
	decide := goOn()
	go func() {
		decide()
		asked <- m.read()
	}()
	return kept.keep(m.ctx)
}

// open begins the lease, which may be resumed once it is in the journal.
func (m *multiplex) open(request *leasev1.OpenRequest) (err error) {
	if m.lease, err = m.leases.open(request, m.stream); err != nil {
		return err
	}
	m.lease.id, m.lease.key = m.leases.services.leases.ids.enter(m.lease.identity, m.lease)
	m.journal()
	m.lease.heedDrain()
	return nil
}

var multiplexWords = leaseWords[*leasev1.MultiplexResponse]{
	opened: func(o *leasev1.Opened) *leasev1.MultiplexResponse {
		return &leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Opened{Opened: o}}
	},
	heldWords: heldWords[*leasev1.MultiplexResponse]{
		suspended: func(s *holdv1.Suspended) *leasev1.MultiplexResponse {
			return &leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Suspended{Suspended: s}}
		},
		resumed: func(r *holdv1.Resumed) *leasev1.MultiplexResponse {
			return &leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Resumed{Resumed: r}}
		},
	},
}

// read takes the caller's messages until it has no more, and says why the stream must end; nil if the caller closes it.
func (m *multiplex) read() error {
	for {
		message, err := m.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.box.Unsent() > mostUnsent:
			return errSlowReader
		}
		switch of := message.GetRequest().(type) {
		case *leasev1.MultiplexRequest_Start:
			err = m.start(of.Start, fresh)
		case *leasev1.MultiplexRequest_Stop:
			m.stop(of.Stop.GetRequestId())
		case *leasev1.MultiplexRequest_Check:
			m.check(of.Check.GetCheckId())
		case *leasev1.MultiplexRequest_Open:
			err = invalid("open", "", "the first message only")
		case *leasev1.MultiplexRequest_Resume:
			err = invalid("resume", "", "the first message only")
		default:
			err = invalid("request", "", "start, stop or check")
		}
		if err != nil {
			return err
		}
	}
}

// check answers for how long the lease is valid. What is told is noted before it leaves.
func (m *multiplex) check(id uint64) {
	m.box.Add(func() (*leasev1.MultiplexResponse, bool) {
		validFor := m.lease.tell(caller.Of(m.ctx), m.lease.session.AssuredFor())
		checked := &leasev1.Checked{CheckId: id, ValidFor: durationpb.New(validFor)}
		return &leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Checked{Checked: checked}}, true
	}, nil)
}

// start begins a request, which may have been begun before the sidecar was started.
func (m *multiplex) start(request *leasev1.Start, claimed *claim) error {
	of := m.callOf(request)
	id := request.GetRequestId()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case id == 0, m.requests[id] != nil:
		return errRequestID(id)
	case m.settled:
		return nil
	}
	m.last++
	begun := &started{multiplex: m, id: id, number: m.last, claim: claimed, over: newOver(m.over.ctx)}
	begun.life = m.lease.drive.begin(caller.Of(m.ctx), true)
	begun.stopped = newLatchThat(begun.isGivenUp)
	m.requests[id] = begun
	m.telling.Add(1)
	m.running.Go(func() { begun.run(of) })
	return nil
}

func errRequestID(id uint64) error {
	return invalid("request_id", strconv.FormatUint(id, 10), "1 or more, and another one for each request of a lease")
}

// A singleCall is one that does what is started, with its request.
type singleCall struct {
	method  string
	request any
	handle  func(stream grpc.ServerStream) error
}

// callOf is the call that does what is started. What a newer client may ask for ends alone: other things stand on the lease.
func (m *multiplex) callOf(request *leasev1.Start) singleCall {
	services := m.leases.services
	switch of := request.GetRequest().(type) {
	case *leasev1.Start_Acquire:
		locks := &lockService{services: services, directory: services.lockDirectory()}
		return calling(lockv1.LockService_Acquire_FullMethodName, of.Acquire, locks.Acquire)
	case *leasev1.Start_AcquireAll:
		locks := &lockService{services: services, directory: services.lockDirectory()}
		return calling(lockv1.LockService_AcquireAll_FullMethodName, of.AcquireAll, locks.AcquireAll)
	case *leasev1.Start_AcquirePermits:
		semaphores := &semaphoreService{services: services}
		return calling(semaphorev1.SemaphoreService_Acquire_FullMethodName, of.AcquirePermits, semaphores.Acquire)
	case *leasev1.Start_Campaign:
		elections := &electionService{services: services}
		return calling(electionv1.ElectionService_Campaign_FullMethodName, of.Campaign, elections.Campaign)
	case *leasev1.Start_Enter:
		barriers := &barrierService{services: services}
		return calling(barrierv1.BarrierService_Enter_FullMethodName, of.Enter, barriers.Enter)
	case *leasev1.Start_Join:
		members := &membershipService{services: services}
		return calling(membershipv1.MembershipService_Join_FullMethodName, of.Join, members.Join)
	}
	return singleCall{leasev1.LeaseService_Multiplex_FullMethodName, nil, func(grpc.ServerStream) error { return errUnknownKind }}
}

func calling[Q, M any](method string, request *Q, handle func(*Q, grpc.ServerStreamingServer[M]) error) singleCall {
	return singleCall{method, request, func(stream grpc.ServerStream) error {
		return handle(request, &grpc.GenericServerStream[Q, M]{ServerStream: stream})
	}}
}

// stop has a request given up or, once it has ended, its end acknowledged.
func (m *multiplex) stop(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.requests[id]; found != nil {
		m.lease.drive.step(machine.Event{Kind: machine.Stopped, Of: found.life})
		found.asked.Store(true)
		found.stopped.close()
	}
}

// isGivenUp is called when the caller gives the request up or acknowledges its end.
func (s *started) isGivenUp() {
	s.over.end(errGivenUp)
	s.lease.drive.step(machine.Event{Kind: machine.Acknowledged, Of: s.life})
}

// letGo notes that the caller has closed the lease, and counts on nothing that stands on it.
func (m *multiplex) letGo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, each := range m.requests {
		m.lease.drive.step(machine.Event{Kind: machine.Stopped, Of: each.life})
	}
}

// settle returns when each request has told its end, or nobody reads it: it is called when the lease has ended.
func (m *multiplex) settle() {
	m.mu.Lock()
	m.settled = true
	m.mu.Unlock()
	m.telling.Wait()
	m.mu.Lock()
	m.silent = true
	m.mu.Unlock()
}

// tell has a message sent, unless the stream is over. When it has been handed to the transport, handed is called.
func (m *multiplex) tell(message *leasev1.MultiplexResponse, handed func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.silent {
		handed()
		return
	}
	m.box.Add(func() (*leasev1.MultiplexResponse, bool) { return message, true }, handed)
}

// run is a request from its start until its place is gone. Its end is handed to the transport before the place is given up, unless the
// caller has asked for it: then it says that the place is gone.
func (s *started) run(of singleCall) {
	defer s.stopped.careless()
	defer s.over.end(nil) // of what was asked in its context
	ctx, afterStatus := caller.Inner(context.WithValue(s.over.ctx, startedKey{}, s))
	told := sync.OnceFunc(s.telling.Done)
	defer told()
	admission, err := caller.AdmitterOf(s.ctx).Begin(ctx, of.method, of.request, s.claim != fresh)
	if err == nil {
		err = admission.End(recovered(admission.Context(), of.handle))
	}
	if s.claim != fresh && !s.inHand {
		s.refuseClaim(err)
	}
	asked := s.asked.Load()
	if !asked {
		s.tellEnd(err)
	}
	told()
	s.decide()
	afterStatus()
	s.giveUpClaim()
	s.lease.drive.step(machine.Event{Kind: machine.Forgotten, Of: s.life})
	s.mu.Lock()
	delete(s.requests, s.id)
	s.mu.Unlock()
	if asked {
		s.tell(s.ended(err), func() {})
	}
}

// recovered handles a call, and has a panic end it alone.
func recovered(ctx context.Context, handle func(stream grpc.ServerStream) error) error {
	return recovering(nil, &innerStream{ctx: ctx}, nil, func(_ any, stream grpc.ServerStream) error { return handle(stream) })
}

var recovering = recovery.StreamServerInterceptor()

// tellEnd returns when the end of the request has been handed to the transport, or nobody reads it.
func (s *started) tellEnd(err error) {
	sent := make(chan struct{})
	s.tell(s.ended(err), func() {
		s.lease.drive.step(machine.Event{Kind: machine.Handed, Of: s.life})
		close(sent)
	})
	select {
	case <-sent:
		return
	case <-s.unread.Done():
	}
	s.lease.drive.step(machine.Event{Kind: machine.Unread, Of: s.life})
}

// ended is the status of a request as a message.
func (s *started) ended(err error) *leasev1.MultiplexResponse {
	ended := &leasev1.Ended{RequestId: s.id}
	if answer, _ := StatusOf(err); err != nil && !(s.asked.Load() && answer.Code() == codes.Canceled) {
		ended.Code, ended.Message = int32(answer.Code()), answer.Message()
		for _, detail := range answer.Details() {
			switch of := detail.(type) {
			case *errdetails.ErrorInfo:
				ended.Reason, ended.Metadata = of.GetReason(), of.GetMetadata()
			case *errdetails.RetryInfo:
				ended.RetryDelay = of.GetRetryDelay()
			}
		}
	}
	return &leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Ended{Ended: ended}}
}

// event is what the single call of a request would send, as a message.
func (s *started) event(of any) *leasev1.MultiplexResponse {
	event := &leasev1.Event{RequestId: s.id}
	switch of := of.(type) {
	case *lockv1.AcquireResponse:
		event.Event = &leasev1.Event_Acquire{Acquire: of}
	case *lockv1.AcquireAllResponse:
		event.Event = &leasev1.Event_AcquireAll{AcquireAll: of}
	case *semaphorev1.AcquireResponse:
		event.Event = &leasev1.Event_AcquirePermits{AcquirePermits: of}
	case *electionv1.CampaignResponse:
		event.Event = &leasev1.Event_Campaign{Campaign: of}
	case *barrierv1.EnterResponse:
		event.Event = &leasev1.Event_Enter{Enter: of}
	case *membershipv1.JoinResponse:
		event.Event = &leasev1.Event_Join{Join: of}
	}
	return &leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Event{Event: event}}
}

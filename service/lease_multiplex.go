package service

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
)

// mostUnsent is how many answers may wait for a caller that asks and does not read.
const mostUnsent = 4096

// A multiplex is a lease's stream that carries all that stands on it. Each request is admitted and held as its single call would be, with
// topics of its own in the one outbox in place of an outbox of its own.
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
	stops    int                 // requests that the caller has stopped without an answer so far: a drain waits for that
	deaf     bool                // the caller reads no answer any more

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
	holder  holder      // nil until it was admitted
	stopped *latch      // closed when the caller has given it up or acknowledged its end, here or by Release
	asked   atomic.Bool // whether it has done so here

	endedWith error // once it has ended; nil if it was given up or released
	tellsGone bool  // the end is told when the place is gone, and not before
}

// Multiplex is Open, with everything that stands on the lease.
func (l *leaseService) Multiplex(stream grpc.BidiStreamingServer[leasev1.MultiplexRequest, leasev1.MultiplexResponse]) error {
	began := time.Now()
	first, every, err := receiveFirst(stream.Recv)
	if err != nil {
		return err
	}
	m := &multiplex{leases: l, stream: stream, ctx: stream.Context(), requests: map[uint64]*started{}}
	m.unread = newOver(m.ctx)
	m.box, m.over = newOutbox(m.unread, stream.Send), newOver(m.unread.ctx)
	m.box.Linger(time.Second)
	context.AfterFunc(m.unread.ctx, m.isUnread)
	goOn := func() (decide func()) { return func() {} }
	if first.GetOpen() != nil {
		err = m.open(first.GetOpen())
	} else {
		goOn, err = m.resume(first.GetResume())
	}
	if err != nil {
		return err
	}
	forgetStop := context.AfterFunc(m.lease.drain.stopping, m.stopping)
	forgetEnd := context.AfterFunc(m.over.ctx, m.isOver)
	asked := make(chan error, 2) // for two who may
	caller.PermissionOf(m.ctx).Ends(func(why error) { asked <- why })
	kept := &leaseStream[*leasev1.MultiplexResponse]{
		services: l.services, began: began, lease: m.lease, over: m.over, box: m.box, words: multiplexWords,
		asked: asked, closing: m.letGo, settled: m.settle, after: func() {
			forgetStop()
			forgetEnd()
			m.running.Wait()
		},
	}
	keepAlive(m.box, every, &leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Keepalive{Keepalive: alive}})
	kept.announce()
	decide := goOn()
	go func() {
		decide()
		asked <- m.read()
	}()
	return kept.keep(m.ctx)
}

// receiveFirst receives the first message, and says how often the stream sends something: nil if its caller does not ask for that.
func receiveFirst(receive func() (*leasev1.MultiplexRequest, error)) (first *leasev1.MultiplexRequest, every *time.Duration, err error) {
	first, err = run(receive).wait() // not on the handler's stack, which would have to be of 16 KiB for it, and not of 8
	switch of := first.GetRequest().(type) {
	case *leasev1.MultiplexRequest_Open:
		every, err = parseKeepalive(of.Open)
	case *leasev1.MultiplexRequest_Resume:
		every, err = parseKeepalive(of.Resume)
	default:
		if errors.Is(err, io.EOF) {
			err = invalid("open", "", "the first message")
		} else if err == nil {
			err = invalid("request", "", "open or resume in the first message")
		}
	}
	return first, every, err
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
	})
}

// start begins a request, which may have been begun before the sidecar was started.
func (m *multiplex) start(request *leasev1.Start, claimed *claim) error {
	begun, err := m.enter(request.GetRequestId(), claimed)
	if begun != nil {
		begun.run(m.callOf(request))
	}
	return err
}

// enter makes a request of this number; nil if nothing starts any more.
func (m *multiplex) enter(id uint64, claimed *claim) (*started, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case id == 0, m.requests[id] != nil:
		return nil, errRequestID(id)
	case m.settled:
		return nil, nil //nolint:nilnil // it is over
	}
	m.last++
	begun := &started{multiplex: m, id: id, number: m.last, claim: claimed, over: newOver(m.over.ctx)}
	begun.life = m.lease.drive.begin(caller.Of(m.ctx), true)
	begun.stopped = newLatch()
	begun.stopped.tell(begun)
	if claimed != fresh {
		claimed.of = begun
	}
	m.requests[id] = begun
	m.telling.Add(1)
	m.running.Add(1)
	return begun, nil
}

func errRequestID(id uint64) error {
	return invalid("request_id", strconv.FormatUint(id, 10), "1 or more, and another one for each request of a lease")
}

// isGivenUp is called when the caller gives the request up or acknowledges its end.
func (s *started) isGivenUp() {
	if made := s.made(); made != nil {
		made.isGivenUp()
		return
	}
	s.lease.drive.step(machine.Event{Kind: machine.Acknowledged, Of: s.life})
	s.withdraw(errGivenUp)
}

// withdraw ends the request with a reason. One that has not been made yet finds that out as it begins.
func (s *started) withdraw(why error) {
	s.over.end(why)
	if made := s.made(); made != nil {
		made.isEnded()
	}
}

// made is the request once it was admitted; otherwise nil.
func (s *started) made() holder {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder
}

// all are the requests that have not gone.
func (m *multiplex) all() []*started {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.requests))
}

// letGo notes that the caller has closed the lease, and counts on nothing that stands on it.
func (m *multiplex) letGo() {
	for _, each := range m.all() {
		m.lease.drive.step(machine.Event{Kind: machine.Stopped, Of: each.life})
	}
}

// stopping is when the sidecar begins to stop. What is made later finds that out itself.
func (m *multiplex) stopping() {
	for _, each := range m.all() {
		if made := each.made(); made != nil {
			made.stopping()
		}
	}
}

// isOver is when the stream has ended, or its lease. Each request is ended first, for its context may not know of that yet: contexts end in any
// order. What is begun later is over from the beginning.
func (m *multiplex) isOver() {
	for _, each := range m.all() {
		each.withdraw(m.over.why())
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
	silent := m.silent
	if !silent {
		m.box.Tell(message, handed)
	}
	m.mu.Unlock()
	if silent {
		handed()
	}
}

// run begins a request. The goroutines that bring its events go on with it, until its place is gone.
func (s *started) run(of heldCall) {
	admission, err := caller.AdmitterOf(s.ctx).Begin(s.over.ctx, of.method, of.request, s.claim != fresh)
	if err != nil {
		s.end(err)
		return
	}
	made, err := s.prepare(admission.Context(), of)
	if err != nil {
		s.end(admission.End(err))
		return
	}
	s.mu.Lock()
	s.holder = made
	s.mu.Unlock()
	made.begin(func(err error) { s.end(admission.End(err)) })
}

func (s *started) prepare(ctx context.Context, of heldCall) (made holder, err error) {
	defer contain(&err)
	return of.prepare(ctx, s)
}

// end tells the request's end, and then gives up its place. Its end is handed to the transport before that, unless the caller has asked for it:
// then it says that the place is gone.
func (s *started) end(err error) {
	if s.claim != fresh && !s.inHand {
		s.refuseClaim(err)
	}
	s.endedWith = err
	if s.asked.Load() {
		s.tellsGone = true
		s.giveUp()
		return
	}
	var once sync.Once
	told := func(how machine.Kind) {
		once.Do(func() {
			s.lease.drive.step(machine.Event{Kind: how, Of: s.life})
			s.giveUp()
		})
	}
	forget := context.AfterFunc(s.unread.ctx, func() { told(machine.Unread) })
	s.tell(s.ended(), func() {
		forget()
		told(machine.Handed)
	})
}

// giveUp gives up what the request has, once its end was told or will be when that has gone.
func (s *started) giveUp() {
	s.telling.Done()
	s.decide()
	if s.holder == nil {
		s.release()
		return
	}
	s.holder.giveUp(s.release)
}

// release lets go of what is claimed, if anything is.
func (s *started) release() {
	if s.claim == fresh {
		s.isGone()
		return
	}
	go func() {
		s.giveUpClaim()
		s.isGone()
	}()
}

// isGone is when all that the request had is gone.
func (s *started) isGone() {
	s.lease.drive.step(machine.Event{Kind: machine.Forgotten, Of: s.life})
	s.mu.Lock()
	delete(s.requests, s.id)
	s.mu.Unlock()
	switch {
	case s.tellsGone:
		s.tell(s.ended(), s.isHeard)
	case s.asked.Load():
		s.isHeard()
	}
	s.over.end(nil) // of what was asked in its context
	s.stopped.tell(nil)
	s.running.Done()
}

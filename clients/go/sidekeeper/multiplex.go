package sidekeeper

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// A multiplex is the stream of a lease, which carries all that its client starts on the lease.
type multiplex struct {
	lease     *Lease
	streaming context.Context //nolint:containedctx // of the stream, and of those that come after it
	stream    leasev1.LeaseService_MultiplexClient
	hangUp    func()        // ends the stream, and returns when nothing is sent over it any more
	news      chan struct{} // that there is something to send
	done      chan struct{} // closed when the stream is not read any more

	mu        sync.Mutex
	resumable bool   // by a stream that comes after this one, when the sidecar was started again
	broken    bool   // until another stream has resumed the lease
	last      uint64 // id given to a request or a check
	unsent    []*leasev1.MultiplexRequest
	closing   bool // nothing is sent any more when all that is unsent was
	requests  map[uint64]*request
	pending   map[uint64]bool // requests that have ended and whose holder has not acknowledged that
	checks    map[uint64]chan time.Duration
}

// open opens the stream. Its messages are sent by a goroutine of its own: a frozen sidecar takes none.
func (m *multiplex) open(ctx context.Context, options LeaseOptions) (receive func() error, err error) {
	m.streaming = ctx
	m.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: options.request()}})
	return m.receive, m.begin()
}

// begin opens a stream, over which everything goes that is unsent.
func (m *multiplex) begin() error {
	ctx, cancel := context.WithCancel(m.streaming)
	stream, err := m.lease.client.leases.Multiplex(ctx)
	if err != nil {
		cancel()
		return err
	}
	sent := make(chan struct{})
	m.stream, m.hangUp = stream, func() {
		cancel()
		<-sent
	}
	m.lease.client.following.Go(func() {
		defer close(sent)
		m.sendAll(ctx, stream)
	})
	return nil
}

func (m *multiplex) send(message *leasev1.MultiplexRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sendLocked(message)
}

// close has the sidecar close the lease when it has taken what was sent before.
func (m *multiplex) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closing = true
	m.sendLocked(nil)
}

func (m *multiplex) sendLocked(message *leasev1.MultiplexRequest) {
	m.unsent = append(m.unsent, message)
	signal(m.news)
}

// signal leaves word for one who may be waiting.
func signal(news chan struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}

func (m *multiplex) sendAll(ctx context.Context, stream leasev1.LeaseService_MultiplexClient) {
	for {
		m.mu.Lock()
		messages := m.unsent
		m.unsent = nil
		m.mu.Unlock()
		for _, message := range messages {
			if message == nil {
				_ = stream.CloseSend() // receive is told of errors
				return
			}
			if stream.Send(message) != nil { // receive is told why
				return
			}
		}
		if len(messages) > 0 {
			continue
		}
		select {
		case <-m.news:
		case <-ctx.Done():
			return
		}
	}
}

// receive takes in one message. It waits for no function of a caller: requests take in their events themselves.
func (m *multiplex) receive() error {
	message, err := m.stream.Recv()
	if err != nil && m.mayResume(err) {
		message, err = m.resume(err)
	}
	if err != nil {
		m.hangUp()
		return err
	}
	switch response := message.GetResponse().(type) {
	case *leasev1.MultiplexResponse_Opened:
		m.noteResumable(response.Opened.GetResumable() && m.lease.client.resumes)
		m.lease.opened(response.Opened)
	case *leasev1.MultiplexResponse_Suspended:
		m.lease.suspend(nil, nil)
		m.tellHolders(func(r *request) { r.suspended(response.Suspended.GetRemaining()) })
	case *leasev1.MultiplexResponse_Resumed:
		m.lease.resume(nil)
		m.tellHolders(func(r *request) { r.resumed() })
	case *leasev1.MultiplexResponse_Event:
		m.request(response.Event.GetRequestId()).hear(response.Event)
	case *leasev1.MultiplexResponse_Ended:
		if r := m.request(response.Ended.GetRequestId()); r != nil {
			r.end(r.endOf(response.Ended))
		}
	case *leasev1.MultiplexResponse_Checked:
		m.checked(response.Checked)
	}
	return nil
}

func (m *multiplex) request(id uint64) *request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[id]
}

// tellHolders tells those requests of something that have what they asked for.
func (m *multiplex) tellHolders(tell func(*request)) {
	for _, r := range m.standing() {
		if r.begun {
			r.add(func() { tell(r) })
		}
	}
}

func (m *multiplex) standing() []*request {
	m.mu.Lock()
	defer m.mu.Unlock()
	standing := make([]*request, 0, len(m.requests))
	for _, r := range m.requests {
		standing = append(standing, r)
	}
	return standing
}

// end is for when the stream is not read any more.
func (m *multiplex) end() {
	m.lease.client.multiplexes.Delete(m.lease.id)
	m.mu.Lock()
	close(m.done)
	m.mu.Unlock()
	for _, r := range m.standing() {
		r.end(m.lease.why())
	}
}

// ask asks for how long the lease is valid, which comes on the channel. What is read before has ended by then.
func (m *multiplex) ask() <-chan time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	answer := make(chan time.Duration, 1)
	clear(m.checks) // no goroutine waits for an earlier one
	m.checks[m.last] = answer
	m.sendLocked(checkRequest(m.last))
	return answer
}

func checkRequest(id uint64) *leasev1.MultiplexRequest {
	return &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Check{Check: &leasev1.CheckValidity{CheckId: id}}}
}

func stopRequest(id uint64) *leasev1.MultiplexRequest {
	return &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: id}}}
}

func (m *multiplex) checked(answer *leasev1.Checked) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if asked := m.checks[answer.GetCheckId()]; asked != nil {
		asked <- answer.GetValidFor().AsDuration()
		delete(m.checks, answer.GetCheckId())
	}
}

// A request is a lock, permits, a candidacy or a member on the stream of its lease.
type request struct {
	*multiplex
	start     *leasev1.Start
	claim     *claim
	kept      bool // what it is for is stopped only when it is released
	handle    func(*leasev1.Event)
	suspended func(remaining *durationpb.Duration)
	resumed   func()

	begun     bool   // whether it has what it asked for; of the stream's reader, as the next three
	holdID    string // of what was granted
	token     int64  // of what it has
	mayBeGone bool   // the sidecar was asked to give it up over a stream that has broken since
	stopping  sync.Once
	arrived   chan struct{} // that there is an event
	ended     chan struct{} // closed when nothing more arrives

	events    []func() // of multiplex.mu, as the next two
	over      error    // how it has ended
	stopAsked bool     // whether the sidecar was asked to give it up
}

// carry has the lease's stream carry r, whose other fields are the caller's. It is not started yet.
func (m *multiplex) carry(r *request) *request {
	r.multiplex, r.arrived, r.ended = m, make(chan struct{}, 1), make(chan struct{})
	r.claim.parent, r.claim.cut = m.lease.claim, r.leave
	return r
}

// open starts the request.
func (r *request) open() (receive func() error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.done:
		return nil, r.lease.why()
	case <-r.ended:
		return nil, r.over
	default:
	}
	r.last++
	r.start.RequestId = r.last
	r.requests[r.last] = r
	r.sendLocked(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: r.start}})
	return r.receive, nil
}

func (r *request) add(event func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
	signal(r.arrived)
}

// receive takes in one event.
func (r *request) receive() error {
	for {
		event, err := r.next()
		if event != nil {
			event()
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-r.arrived:
		case <-r.ended:
		}
	}
}

func (r *request) next() (event func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return nil, r.over
	}
	event, r.events = r.events[0], r.events[1:]
	return event, nil
}

// endOf is how a request has ended. Whose place is gone because the caller gave it up has lost nothing.
func (r *request) endOf(ended *leasev1.Ended) error {
	if r.mayBeGone && ended.GetCode() == int32(codes.Aborted) {
		return io.EOF
	}
	return errorOf(ended)
}

// end ends the request's claim at once, also while a function of its caller's takes its time: the lease that it counts on goes on.
func (r *request) end(err error) {
	if r.kept && r.begun && !errors.Is(err, io.EOF) {
		r.awaitAcknowledgment()
	}
	r.finish(err)
	r.claim.streamEnded(err)
}

func (r *request) awaitAcknowledgment() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopAsked {
		r.pending[r.start.GetRequestId()] = true
	}
}

func (r *request) finish(err error) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		return false
	}
	delete(r.requests, r.start.GetRequestId())
	r.over = err
	close(r.ended)
	return true
}

// leave gives up what is waited for or held, and waits for nothing.
func (r *request) leave() {
	if r.finish(context.Canceled) {
		r.mu.Lock()
		r.events = nil
		r.mu.Unlock()
		r.stop()
	}
}

// isGivenUp says whether the sidecar has ended it because the caller asked for that.
func (r *request) isGivenUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Is(r.over, io.EOF)
}

// stop has the sidecar give up what is waited for or held, or tells it that its end is known.
func (r *request) stop() {
	r.stopping.Do(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if id := r.start.GetRequestId(); id != 0 {
			r.stopAsked = true
			delete(r.pending, id)
			r.sendLocked(stopRequest(id))
		}
	})
}

// release returns when the place is gone.
func (r *request) release(ctx context.Context) error {
	r.stop()
	select {
	case <-r.ended:
	case <-ctx.Done():
		return &Error{Code: codes.DeadlineExceeded, Message: context.Cause(ctx).Error()}
	}
	if errors.Is(r.over, io.EOF) {
		return nil
	}
	return r.over
}

package sidekeeper

import (
	"context"
	"io"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// A multiplex is the one stream of a lease that all travels over which stands on it. Each part is shown as the stream that a single call
// would have. What the sidecar says is taken in in the order in which it says it: an end ends its claim before a later answer says for
// how much longer the lease is valid, and with it all that stands on it.
type multiplex struct {
	stream grpc.BidiStreamingClient[leasev1.MultiplexRequest, leasev1.MultiplexResponse]
	lease  *part[leasev1.OpenResponse]

	sending sync.Mutex // orders what is sent

	mu     sync.Mutex
	newest uint64 // number of requests and checks
	parts  map[uint64]requestPart
	checks map[uint64]chan *leasev1.Checked
	over   error // why nothing is sent or received any more
}

// A requestPart is what a multiplex does with what it hears about one request.
type requestPart interface {
	hear(event *leasev1.Event)
	connectivity(of *leasev1.MultiplexResponse)
	end(err error)
}

// openMultiplex opens a lease on a stream of its own.
func (c *Client) openMultiplex(ctx context.Context, request *leasev1.OpenRequest) (*multiplex, error) {
	stream, err := c.leases.Multiplex(ctx)
	if err != nil {
		return nil, err
	}
	m := &multiplex{
		stream: stream, lease: newPart[leasev1.OpenResponse](ctx, nil), parts: map[uint64]requestPart{}, checks: map[uint64]chan *leasev1.Checked{},
	}
	if err := m.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: request}}); err != nil {
		return nil, err
	}
	c.following.Go(m.read)
	return m, nil
}

// send sends a message. That the stream is over, its reader learns.
func (m *multiplex) send(message *leasev1.MultiplexRequest) error {
	m.sending.Lock()
	defer m.sending.Unlock()
	err := m.stream.Send(message)
	if err == io.EOF { //nolint:errorlint // as Send documents it
		return nil
	}
	return err
}

// read takes in what the sidecar says until the stream's end, which is that of all its parts.
func (m *multiplex) read() {
	for {
		message, err := m.stream.Recv()
		if err != nil {
			m.end(err)
			return
		}
		m.take(message)
	}
}

func (m *multiplex) take(message *leasev1.MultiplexResponse) {
	switch of := message.GetResponse().(type) {
	case *leasev1.MultiplexResponse_Opened:
		m.lease.add(&leasev1.OpenResponse{Event: &leasev1.OpenResponse_Opened{Opened: of.Opened}})
	case *leasev1.MultiplexResponse_Suspended:
		m.lease.add(&leasev1.OpenResponse{Event: &leasev1.OpenResponse_Suspended{Suspended: of.Suspended}})
		m.each(func(p requestPart) { p.connectivity(message) })
	case *leasev1.MultiplexResponse_Resumed:
		m.lease.add(&leasev1.OpenResponse{Event: &leasev1.OpenResponse_Resumed{Resumed: of.Resumed}})
		m.each(func(p requestPart) { p.connectivity(message) })
	case *leasev1.MultiplexResponse_Event:
		if found := m.find(of.Event.GetRequestId()); found != nil {
			found.hear(of.Event)
		}
	case *leasev1.MultiplexResponse_Ended:
		if found := m.remove(of.Ended.GetRequestId()); found != nil {
			found.end(statusOfEnd(of.Ended))
		}
	case *leasev1.MultiplexResponse_Checked:
		m.mu.Lock()
		asked := m.checks[of.Checked.GetCheckId()]
		delete(m.checks, of.Checked.GetCheckId())
		m.mu.Unlock()
		if asked != nil {
			asked <- of.Checked
		}
	}
}

func (m *multiplex) find(id uint64) requestPart {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.parts[id]
}

func (m *multiplex) remove(id uint64) requestPart {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.parts[id]
	delete(m.parts, id)
	return found
}

func (m *multiplex) each(do func(requestPart)) {
	m.mu.Lock()
	parts := make([]requestPart, 0, len(m.parts))
	for _, p := range m.parts {
		parts = append(parts, p)
	}
	m.mu.Unlock()
	for _, p := range parts {
		do(p)
	}
}

func (m *multiplex) end(err error) {
	m.mu.Lock()
	m.over = err
	checks := m.checks
	m.checks = nil
	m.mu.Unlock()
	for _, asked := range checks {
		close(asked)
	}
	m.lease.end(err)
	m.each(func(p requestPart) { p.end(err) })
}

// check asks for how long the lease is valid, and with it all that stands on it.
func (m *multiplex) check(ctx context.Context) (*leasev1.Checked, error) {
	answered := make(chan *leasev1.Checked, 1)
	m.mu.Lock()
	if m.over != nil {
		m.mu.Unlock()
		return nil, m.over
	}
	m.newest++
	id := m.newest
	m.checks[id] = answered
	m.mu.Unlock()
	err := m.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Check{Check: &leasev1.Check{CheckId: id}}})
	if err != nil {
		return nil, err
	}
	select {
	case checked, ok := <-answered:
		if !ok {
			return nil, m.over
		}
		return checked, nil
	case <-ctx.Done():
		m.mu.Lock()
		delete(m.checks, id)
		m.mu.Unlock()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// statusOfEnd is the status that a single call would have ended with.
func statusOfEnd(ended *leasev1.Ended) error {
	if ended.GetCode() == 0 {
		return io.EOF
	}
	told := status.New(codes.Code(ended.GetCode()), ended.GetMessage())
	if ended.GetReason() == "" {
		return told.Err()
	}
	facts := ended.GetMetadata()
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "sidekeeper", Reason: ended.GetReason(), Metadata: facts}}
	if field := facts["field"]; field != "" {
		violation := &errdetails.BadRequest_FieldViolation{Field: field, Description: facts["rule"]}
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{violation}})
	}
	if detailed, err := told.WithDetails(details...); err == nil {
		told = detailed
	}
	return told.Err()
}

// A part is the stream of one call, as its reader sees it.
type part[Event any] struct {
	grpc.ClientStream

	ctx    context.Context //nolint:containedctx // of the call
	ended  func(error)     // called with its end as soon as that is known; may be nil
	news   chan struct{}
	mu     sync.Mutex
	events []*Event
	err    error
}

func newPart[Event any](ctx context.Context, ended func(error)) *part[Event] {
	return &part[Event]{ctx: ctx, ended: ended, news: make(chan struct{}, 1)}
}

func (p *part[Event]) add(event *Event) {
	p.mu.Lock()
	p.events = append(p.events, event)
	p.mu.Unlock()
	p.tell()
}

func (p *part[Event]) end(err error) {
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	if p.ended != nil {
		p.ended(err)
	}
	p.tell()
}

func (p *part[Event]) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// Recv implements grpc.ServerStreamingClient.
func (p *part[Event]) Recv() (*Event, error) {
	for {
		event, err := p.next()
		if event != nil || err != nil {
			return event, err
		}
		select {
		case <-p.news:
		case <-p.ctx.Done():
			return nil, status.FromContextError(p.ctx.Err()).Err()
		}
	}
}

// how is how it has ended.
func (p *part[Event]) how() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *part[Event]) next() (*Event, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) == 0 {
		return nil, p.err
	}
	first := p.events[0]
	p.events = p.events[1:]
	return first, nil
}

// A request is one that was started on a multiplex.
type request[Event any] struct {
	*part[Event]
	of      *multiplex
	id      uint64
	event   func(*leasev1.Event) *Event
	state   func(suspended *leasev1.Suspended) *Event // resumed, if that is nil
	stopped sync.Once
	gone    chan struct{} // closed when it has ended for the sidecar
	begun   bool          // whether it has what it asked for; touched by the reader alone
}

func (r *request[Event]) hear(event *leasev1.Event) {
	r.begun = r.begun || event.GetAcquire().GetGranted() != nil || event.GetJoin().GetJoined() != nil
	if heard := r.event(event); heard != nil {
		r.add(heard)
	}
}

func (r *request[Event]) connectivity(of *leasev1.MultiplexResponse) {
	if r.begun {
		r.add(r.state(of.GetSuspended()))
	}
}

func (r *request[Event]) end(err error) {
	r.part.end(err)
	close(r.gone)
}

// begin starts the request. Its place is given up, or its end acknowledged, when ctx ends.
func (r *request[Event]) begin(ctx context.Context, m *multiplex, start *leasev1.Start) (*request[Event], error) {
	r.of, r.gone = m, make(chan struct{})
	m.mu.Lock()
	if m.over != nil {
		m.mu.Unlock()
		return nil, m.over
	}
	m.newest++
	r.id = m.newest
	m.parts[r.id] = r
	m.mu.Unlock()
	start.RequestId = r.id
	if err := m.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}}); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, r.stop)
	return r, nil
}

func (r *request[Event]) stop() {
	r.stopped.Do(func() {
		_ = r.of.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: r.id}}})
	})
}

// release gives up what the request holds, and returns when its place is gone.
func (r *request[Event]) release(ctx context.Context) error {
	r.stop()
	select {
	case <-r.gone:
		if err := r.how(); err != io.EOF { //nolint:errorlint // as Recv documents it
			return err
		}
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// acquire is Acquire on the lease of the stream.
func (m *multiplex) acquire(ctx context.Context, of *lockv1.AcquireRequest, ended func(error)) (*request[lockv1.AcquireResponse], error) {
	made := &request[lockv1.AcquireResponse]{
		part: newPart[lockv1.AcquireResponse](ctx, ended), event: (*leasev1.Event).GetAcquire,
		state: func(suspended *leasev1.Suspended) *lockv1.AcquireResponse {
			if suspended == nil {
				return &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Resumed{Resumed: &lockv1.Resumed{}}}
			}
			told := &lockv1.Suspended{Remaining: suspended.GetRemaining()}
			return &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Suspended{Suspended: told}}
		},
	}
	return made.begin(ctx, m, &leasev1.Start{Request: &leasev1.Start_Acquire{Acquire: of}})
}

// join is Join on the lease of the stream.
func (m *multiplex) join(ctx context.Context, of *membershipv1.JoinRequest, ended func(error)) (*request[membershipv1.JoinResponse], error) {
	made := &request[membershipv1.JoinResponse]{
		part: newPart[membershipv1.JoinResponse](ctx, ended), event: (*leasev1.Event).GetJoin,
		state: func(suspended *leasev1.Suspended) *membershipv1.JoinResponse {
			if suspended == nil {
				return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Resumed{Resumed: &membershipv1.Resumed{}}}
			}
			told := &membershipv1.Suspended{Remaining: suspended.GetRemaining()}
			return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Suspended{Suspended: told}}
		},
	}
	return made.begin(ctx, m, &leasev1.Start{Request: &leasev1.Start_Join{Join: of}})
}

package service

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// heldParams is what each request for something that is held says, with its fields in order.
type heldParams struct {
	leaseID string         // of the lease that it stands on; if empty, it gets one for itself alone
	about   recipes.About  // what the caller says about itself
	wait    *time.Duration // for how long it waits for its turn; nil for ever
}

type heldRequest interface {
	GetLeaseId() string
	GetOwner() string
	GetMetadata() map[string]string
	GetWaitTimeout() *durationpb.Duration
}

func parseHeld(request heldRequest) (params heldParams, err error) {
	params.leaseID = request.GetLeaseId()
	if params.about, err = parseAbout(request.GetOwner(), request.GetMetadata()); err != nil {
		return params, err
	}
	if params.wait, err = parseDuration("wait_timeout", request.GetWaitTimeout(), 0, longestWait); err != nil {
		return params, err
	}
	if params.leaseID != "" {
		err = parseID("lease_id", params.leaseID)
	}
	return params, err
}

// A heldRecipe is what tells the requests of one recipe from those of the others: its place, its turn and its words.
type heldRecipe[P heldPlace, M any] struct {
	heldParams
	heldWords[M]

	resource resource   // what the request is about
	also     []resource // what else, if that is several
	waits    string     // the kind that its wait counts under; empty for the resource's
	waitsFor string     // what it waits for, in traces; empty for one that does not wait
	wait     *wait      // its place among those who wait through this sidecar; nil for one that does not

	// again is for places that bear a name: a lease can have a second one only when the first is gone. It says why a second request is
	// refused; nil if it shall wait for the first, which is leaving. Where again is nil each second request is refused.
	again func(leaving bool) error

	steps[P, M]
	prompt prompt[P] // nil where a place takes more than one request
	rejoin rejoin[P] // nil of what is not resumed
	early  bool      // the place counts for others before its turn: it cannot be refused then

	removed error // why the hold has ended, if its place was removed by another hand, or its end is asked for at once
	revoked error // and if a revocation's grace is over
	refused error // what is told to a caller that will not wait; it may be nil. Its place is gone then, or others would be refused for it

	unsure  func(err error) error     // what an error means that comes while it waits; may be nil
	end     func(why error)           // ends what is no hold on our side, before the status; why is nil if its caller gave it up
	awaited func(why error) bool      // whether others wait for the end of a hold that excludes nobody; nil if each excludes others
	letGo   func(ctx context.Context) // of a hold whose caller ends it by itself, before the place is left; may be nil
	gone    func()                    // called when the ensemble has let go of the place of an ended hold; may be nil
}

// The steps of a recipe are what it does for a request. M is what the request's caller is sent.
type steps[P, M any] interface {
	// join takes a place. It is called once more after a *blocked, or when ask has given the place up. What it has begun cannot be cancelled.
	join(ctx context.Context, about recipes.About) (P, error)

	// ask finds out how the place stands. ctx is that of the waiting: what is watched in it serves until that ends.
	ask(ctx context.Context) (turn, error)

	begin(ctx context.Context) (announcement M, first nodeState)
	look(ctx context.Context) (nodeState, error) // at the place; recipes.ErrGone if there is none. Any other error says nothing
}

// A prompt recipe takes a place without waiting for anything.
type prompt[P any] interface {
	joinThen(about recipes.About, then func(P, error))
	atOnce() bool // whether the place may be held for what came with it
}

// A rejoin takes the place again that a request had before the sidecar was started.
type rejoin[P any] func(session recipes.Adopter, standing []recipes.Standing, about recipes.About) (P, error)

// A promptPlace is left without waiting for anything.
type promptPlace interface {
	LeaveThen(ctx context.Context, then func())
}

// all is what the request is about.
func (r heldRecipe[P, M]) all() []resource { return append([]resource{r.resource}, r.also...) }

// A heldPlace is what a request has in the ensemble while it waits and holds.
type heldPlace interface {
	comparable

	Gone() *recipes.Signal
	Disregard()
	Leave(ctx context.Context)
}

// A line is how the caller of one request is told of it: by a stream of its own, or by the stream of its lease.
type line[M any] struct {
	ctx     context.Context //nolint:containedctx // of the call
	header  func() error
	send    func(M) error
	started *started // nil for a stream of its own
}

// goesOn says whether the request goes on with what it was before the sidecar was started.
func (l line[M]) goesOn() bool { return l.started != nil && l.started.claim.goesOn() }

// A holder is one request for something that is held.
type holder interface {
	begin(ended func(err error))
	giveUpNow(why error)
	stopping()
	giveUp(then func())
	serve() error
}

// serve is a call of its own, from end to end.
func serve[Q, M any](request Q, stream grpc.ServerStreamingServer[M], prepare func(Q, line[*M]) (holder, error)) error {
	header := func() error { return stream.SendHeader(metadata.MD{}) }
	made, err := prepare(request, line[*M]{ctx: stream.Context(), header: header, send: stream.Send})
	if err != nil {
		return err
	}
	return made.serve()
}

// A phase is how far a request has come.
type phase uint8

const (
	beginning phase = iota
	waiting         // for what the lease has under the same name, for a place, or for its turn
	holding
	ended
)

// A held is one request for something that is held: it takes a lease, takes a place, waits for its turn, holds, ends with a reason, and gives up
// what it has taken after its end was told, however it ends. The goroutine that brings an event does what follows. P is its place, and M what
// its caller is sent.
type held[P heldPlace, M any] struct {
	recipe   heldRecipe[P, M]
	services *Services
	caller   caller.Caller
	began    time.Time
	call     context.Context //nolint:containedctx // of the call that has begun it
	header   func() error
	left     <-chan struct{} // closed when the caller has ended the request
	stream   context.Context //nolint:containedctx // of the stream that the caller reads: only the caller ends it
	over     over
	ends     atomic.Pointer[func() bool] // has the end of over not be heeded; nil if a stream of its own heeds it
	box      mailbox[M]
	started  *started // what the request is on a lease's stream; nil if it has a stream of its own
	claim    *claim   // what the request was before the sidecar was started

	inbox
	phase phase
	tells func(err error) // what the request has ended with, once

	lease  *lease
	stands bool        // on the lease, and has to leave it
	single bool        // the lease is this request's alone
	forget func() bool // has the request not end with its lease any more, if that is not for the lease's own stream to do
	calls  []<-chan struct{}

	waits       context.Context    //nolint:containedctx // of the waiting
	stopWaiting context.CancelFunc // ends that, and what was asked in it
	unbound     func() bool        // has nothing follow when that ends
	waited      func(granted bool) // called when the waiting is over
	taking      *call[P]           // the newest attempt to take a place
	place       P

	begun      bool               // it has begun to hold
	hold       *hold              // then; nil of what is no hold
	holds      chan struct{}      // closed then; nil on a lease's stream
	looks      context.Context    //nolint:containedctx // of the looks at the place
	stopLooks  context.CancelFunc // of looks
	sleep      func()             // has nothing follow that would after a time, or when a signal is given
	forgetGone func()             // has nothing follow when the place is gone
	asked      request            // the newest that the caller was told
	stopTold   bool               // it was told that the sidecar stops
	grace      *time.Timer        // of it, after which the hold ends; nil if it need not
	taken      bool               // the place was removed by another hand

	id           machine.ID      // to the lease's machine
	acknowledged *latch          // closed when the caller has said that it does not count on the hold any more
	parting      machine.Parting // how the request has ended
}

func newHeld[P heldPlace, M any](services *Services, on line[M], recipe heldRecipe[P, M]) *held[P, M] {
	ctx := on.ctx
	made := &held[P, M]{
		recipe: recipe, services: services, caller: caller.Of(ctx), began: time.Now(), call: ctx, header: on.header, started: on.started,
		claim: fresh,
	}
	if of := on.started; of != nil {
		made.stream, made.over, made.claim = of.ctx, over{ctx, of.over.end}, of.claim
		caller.PermissionOf(ctx).Ends(of.over.end)
		made.id, made.box, made.acknowledged, made.left = of.life, drawer[M]{of}, of.stopped, of.stopped.closed
	} else {
		made.stream, made.over, made.holds = ctx, overOf(ctx), make(chan struct{})
		made.box, made.acknowledged, made.left = newOutbox(made.over, on.send), newLatchThat(made.isGivenUp), ctx.Done()
	}
	made.waited, made.unbound, made.forget = func(bool) {}, func() bool { return true }, func() bool { return true }
	made.sleep, made.forgetGone = func() {}, func() {}
	return made
}

// kind is what the request's wait counts under.
func (s *held[P, M]) kind() string { return cmp.Or(s.recipe.waits, s.recipe.resource.kind) }

// do does what follows from something that has happened. A panic ends the request alone.
func (s *held[P, M]) do(what func()) { s.inbox.do(what, s) }

// serve is a call of its own, from end to end. It returns the status that the call ends with; what it has taken is given up after that.
func (s *held[P, M]) serve() error {
	if err := s.header(); err != nil {
		s.recipe.wait.leave()
		return err
	}
	end := make(chan error, 1)
	ended := func(err error) { end <- err }
	caller.AfterStatus(s.call, func() {
		s.giveUp(func() { ended(nil) })
		<-end //nolint:errcheck // giving up does not fail
		s.box.Wait()
	})
	s.begin(ended)
	over, holds, connectivity := s.over.Done(), s.holds, &connectivity{}
	var stops <-chan struct{}
	if s.lease != nil {
		stops = s.lease.drain.notice
	}
	defer func() { connectivity.stop() }()
	for {
		select {
		case err := <-end:
			return err
		case <-over:
			over = nil
			s.do(s.isOver)
		case <-stops:
			stops = nil
			s.stopping()
		case <-holds:
			holds, connectivity = nil, newConnectivity(s.lease.session)
			if connectivity.suspended {
				s.tellConnectivity(true)
			}
		case <-connectivity.changed:
			if connectivity.look() {
				s.tellConnectivity(connectivity.suspended)
			}
		case <-connectivity.tick:
			s.tellConnectivity(true)
		}
	}
}

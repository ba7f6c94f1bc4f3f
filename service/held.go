package service

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// heldParams is what each request for something that is held says, with its fields in order.
type heldParams struct {
	leaseID string         // of the lease that it stands on; if empty, it gets one for itself alone
	about   recipes.About  // what the caller says about itself
	wait    *time.Duration // for how long it waits for its turn; nil for ever
	once    bool           // as of parseQueued: it does not wait at all
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

// parseQueued is parseHeld of a request that stands in a queue. One that waits for no time is granted its turn at once, or refused.
func parseQueued(request heldRequest) (heldParams, error) {
	params, err := parseHeld(request)
	if params.wait != nil && *params.wait == 0 {
		params.once, params.wait = true, nil
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
	waitsFor string     // the waiting, in traces; empty for one that does not wait
	wait     *wait      // its place among those who wait through this sidecar; nil for one that does not

	// again is for places that bear a name: a lease can have a second one only when the first is gone. It says why a second request is
	// refused; nil if it shall wait for the first, which is leaving. Where again is nil each second request is refused.
	again func(leaving bool) error

	steps[P, M]
	prompt prompt[P]   // nil where a place takes more than one request
	rejoin rejoiner[P] // nil of what is not resumed
	asks   bool        // the caller has asked to be told if it waits in a circle
	early  bool        // the place counts for others before its turn: it cannot be refused then

	removed error // why the hold has ended, if its place was removed by another hand, or its end is asked for at once
	revoked error // and if a revocation's grace is over
	refused error // what is told to a caller that will not wait; it may be nil. Its place is gone then, or others would be refused for it

	means   func(err error) error     // what an error means that comes while it waits; may be nil
	end     func(why error)           // ends what is no hold on our side, before the status; why is nil if its caller gave it up
	awaited func(why error) bool      // whether others wait for the end of a hold that excludes nobody; nil if each excludes others
	letGo   func(ctx context.Context) // of a hold whose caller ends it by itself, before the place is left; may be nil
	atEnd   func(ctx context.Context) // likewise, however the hold has ended; may be nil
	gone    func()                    // called when the ensemble has let go of the place of an ended hold; may be nil
}

// The steps of a recipe are what it does for a request. M is what the request's caller is sent.
type steps[P, M any] interface {
	// join takes a place. It is called again after a *notYet, and when ask has given the place up. A place that it has asked for is waited for.
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

// A rejoiner takes the place again that a request had before the sidecar was started. The nodes of that are standing, one or more.
type rejoiner[P any] interface {
	rejoin(session recipes.Adopter, standing []recipes.Standing, about recipes.About) (P, error)
}

// A promptPlace is left without waiting for anything.
type promptPlace interface {
	LeaveThen(ctx context.Context, then func())
}

// A heldPlace is what a request has in the ensemble while it waits and holds.
type heldPlace interface {
	comparable

	Gone() *recipes.Signal
	Disregard()
	Leave(ctx context.Context)
}

// A line is what a request has of the stream that tells its caller of it: one of its own, or that of its lease.
type line[M any] struct {
	call         context.Context //nolint:containedctx // of the call that has begun the request
	stream       context.Context //nolint:containedctx // of the stream that the caller reads: only the caller ends it
	over         over            // of the request
	left         <-chan struct{} // closed when the caller has left the request, or its stream
	acknowledged *latch          // closed when the caller has given the request up or said that it does not count on it any more
	put          put[M]

	lease  *lease     // whose stream it is; nil if the request names one, or gets one
	id     machine.ID // to the lease's machine; 0 if it gets one there
	number uint64     // by which the caller knows it on the lease's stream
	claim  *claim     // what it was before the sidecar was started
}

// A put has a message sent soon, instead of an unsent one of the same topic.
type put[M any] func(about outbox.Topic, compose func() (M, bool))

// A holder is one request for something that is held.
type holder interface {
	begin(ended func(err error))
	isGivenUp()
	stopping()
	isEnded() // over has ended
	giveUp(then func())
	serve(header func() error, sent func()) error
}

// serve is a call of its own, from end to end. The message keepalive is sent if the request asks for it.
func serve[Q keptAlive, M any](
	request Q, stream grpc.ServerStreamingServer[M], keepalive *M, prepare func(Q, line[*M]) (holder, error),
) error {
	every, err := parseKeepalive(request)
	if err != nil {
		return err
	}
	ctx := stream.Context()
	ends := overOf(ctx)
	box := newOutbox(ends, stream.Send)
	made, err := prepare(request, line[*M]{
		call: ctx, stream: ctx, over: ends, left: ctx.Done(), acknowledged: newLatch(), put: box.Put, claim: fresh,
	})
	if err != nil {
		return err
	}
	return made.serve(func() error {
		err := stream.SendHeader(metadata.MD{})
		if err == nil {
			keepAlive(box, every, keepalive)
		}
		return err
	}, box.Wait)
}

// A phase is how far a request has come.
type phase uint8

const (
	beginning phase = iota
	waiting         // for what the lease has under the same name, for a place, or for its turn
	recording       // it was granted, and waits until that is written
	holding
	ended
)

// A held is one request for something that is held: it takes a lease, takes a place, waits for its turn, holds, ends with a reason, and gives up
// what it has taken after its end was told, however it ends. The goroutine that brings an event does what follows. P is its place, and M what
// its caller is sent.
type held[P heldPlace, M any] struct {
	line[M]

	recipe    heldRecipe[P, M]
	services  *Services
	caller    caller.Caller
	began     time.Time
	resources []resource  // what the request is about
	only      [1]resource // room for these, if they are one

	inbox
	phase phase
	tells func(err error) // what the request has ended with, once

	stands bool              // on the lease, and has to leave it
	single bool              // the lease is this request's alone
	forget func() bool       // has the request not end with its lease any more, if nothing else sees to that
	calls  []*recipes.Signal // given when what was asked beside the request has been answered

	waits       context.Context    //nolint:containedctx // of the waiting
	stopWaiting context.CancelFunc // ends that, and what was asked in it; nil if nothing was
	unbound     func() bool        // has nothing follow when that ends
	span        trace.Span         // of the waiting while it counts; else nil
	taking      *call[P]           // the newest attempt to take a place
	place       P

	begun     bool               // it has begun to hold
	untold    bool               // it has ended before its caller was told that it holds
	hold      *hold              // then; nil of what is no hold
	holds     chan struct{}      // closed then; nil unless the stream that is served here waits for that
	looks     context.Context    //nolint:containedctx // of the looks at the place
	stopLooks context.CancelFunc // of looks
	rests     rests              // until what follows next
	ifGone    *recipes.Sequel    // what follows when the place is gone
	asked     request            // the newest that the caller was told
	stopTold  bool               // it was told that the sidecar stops
	grace     *time.Timer        // of it, after which the hold ends; nil if it need not
	taken     bool               // the place was removed by another hand

	parting machine.Parting // how the request has ended
}

func newHeld[P heldPlace, M any](services *Services, on line[M], recipe heldRecipe[P, M]) *held[P, M] {
	made := &held[P, M]{
		line: on, recipe: recipe, services: services, caller: caller.Of(on.call), began: time.Now(), unbound: stopsNothing, forget: stopsNothing,
	}
	made.resources = append(append(made.only[:0], recipe.resource), recipe.also...)
	made.inbox.to = made
	return made
}

func stopsNothing() bool { return false }

// kind is what the request's wait counts under.
func (s *held[P, M]) kind() string { return cmp.Or(s.recipe.waits, s.recipe.resource.kind) }

// serve is a call of its own, from end to end. It returns the status that the call ends with; what it has taken is given up after that, and
// sent returns when nothing is being sent any more.
func (s *held[P, M]) serve(header func() error, sent func()) error {
	if err := header(); err != nil {
		s.recipe.wait.leave()
		return err
	}
	s.holds = make(chan struct{})
	s.acknowledged.tell(s)
	end := make(chan error, 1)
	caller.AfterStatus(s.call, func() {
		s.isHanded()
		s.giveUp(func() { end <- nil })
		<-end //nolint:errcheck // giving up does not fail
		sent()
	})
	s.begin(func(err error) { end <- err })
	over, holds, connectivity := s.over.Done(), s.holds, unheard
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
			s.isEnded()
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

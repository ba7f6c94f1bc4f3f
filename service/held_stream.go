package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// heldParams is what each request for a held stream says, with its fields in order.
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

// A heldRecipe is what tells the held streams of one recipe from those of the others: its place, its turn and its words.
type heldRecipe[M any] struct {
	heldParams
	heldWords[M]

	resource resource   // what the stream is about
	waits    string     // the kind that its wait counts under; empty for the resource's
	also     []resource // what else, if that is several

	// again is for places that bear a name: a lease can have a second one only when the first is gone. It says why a second stream is
	// refused; nil if it shall wait for the first, which is leaving. Where again is nil each second stream is refused.
	again func(leaving bool) error

	awaitTurn func(ctx context.Context) error // takes a place (see take), and returns when it may be held
	early     bool                            // the place counts for others before that: it cannot be refused afterwards
	begin     func(ctx context.Context) (announcement M, first nodeState)
	look      func(ctx context.Context) (nodeState, error) // at the place; recipes.ErrGone if there is none. Any other error says nothing

	removed error // why the hold has ended, if its place was removed by another hand, or somebody asks for its end at once
	revoked error // and if a revocation's grace is over
	refused error // what is told to whoever will not wait; it may be nil. Its place is gone then, or others would be refused for it

	end     func(why error)           // ends the hold on our side, before the status; why is nil if its caller gave it up
	awaited func(why error) bool      // whether others wait for the end of a hold that excludes nobody; nil if each excludes others
	letGo   func(ctx context.Context) // of a hold whose caller ends it by itself, before the place is left; may be nil
	gone    func()                    // called when the ensemble has let go of the place of an ended hold; may be nil
}

// all is what the stream is about.
func (r heldRecipe[M]) all() []resource { return append([]resource{r.resource}, r.also...) }

// A heldPlace is what a stream has in the ensemble while it waits and holds.
type heldPlace interface {
	comparable

	Gone() <-chan struct{}
	Disregard()
	Leave(ctx context.Context)
}

// A heldStream takes a lease, takes a place, waits for its turn, holds, ends with a reason, and gives up what it has taken after
// its status, however it ends. P is its place, and M what it sends.
type heldStream[P heldPlace, M any] struct {
	recipe      heldRecipe[M]
	services    *Services
	caller      caller.Caller
	began       time.Time
	left        <-chan struct{} // closed when the caller has ended the stream
	stream      context.Context //nolint:containedctx // of the stream that the caller reads: only the caller ends it
	over        over
	box         mailbox[M]
	stopWaiting context.CancelFunc // ends the context of the waiting, and what was asked in it
	started     *started           // what the stream is on a lease's stream; nil if it is one of its own
	claim       *claim             // what the request was before the sidecar was started

	lease  *lease
	single bool        // the lease is this stream's alone
	forget func() bool // has the stream not end with its lease any more; nil if the lease's own stream does so
	calls  []<-chan struct{}

	taking *call[P] // the newest attempt to take a place
	place  P

	held         bool          // it has begun to hold
	connectivity *connectivity // from then on
	looking      *call[nodeState]
	looked       <-chan struct{} // closed when the look has an answer
	changed      <-chan struct{} // closed when it is worth to look again
	asked        request         // the newest that the caller was told
	grace        *time.Timer     // of it, after which the hold ends; nil if it need not
	notice       <-chan struct{} // closed when the sidecar begins to stop; nil once the recipe knows
	taken        bool            // the place was removed by another hand

	id           machine.ID      // to the lease's machine
	acknowledged *latch          // closed when the caller has said that it does not count on the hold any more
	parting      machine.Parting // how the stream has ended
}

func newHeldStream[P heldPlace, M any](services *Services, stream grpc.ServerStreamingServer[M]) *heldStream[P, *M] {
	ctx := stream.Context()
	made := &heldStream[P, *M]{services: services, caller: caller.Of(ctx), began: time.Now(), started: startedOf(ctx), claim: claimOf(ctx)}
	if of := made.started; of != nil {
		made.stream, made.over = of.ctx, over{ctx, of.over.end}
		caller.PermissionOf(ctx).Ends(of.over.end)
		made.id, made.box, made.acknowledged, made.left = of.life, drawer[*M]{of}, of.stopped, of.stopped.closed
	} else {
		made.stream, made.over = ctx, overOf(ctx)
		made.box, made.acknowledged, made.left = newOutbox(made.over, stream.Send), newLatchThat(made.isGivenUp), ctx.Done()
	}
	return made
}

// run is the stream from end to end. It returns the status it ends with; what it has taken is given up after that.
func (s *heldStream[P, M]) run(ctx context.Context, recipe heldRecipe[M]) error {
	s.recipe = recipe
	waiting, cancel := s.boundWait()
	defer cancel()
	s.stopWaiting = cancel
	if err := s.mayBeGranted(); err != nil {
		return err
	}
	err := s.takeLease(waiting)
	if err != nil {
		return err
	}
	s.comeBack()
	caller.AfterStatus(ctx, func() { s.giveUp(ctx) })
	defer func() { s.settle(err) }() // also after a panic
	err = errInterrupted
	if err = recipe.awaitTurn(waiting); err == nil && !recipe.early {
		err = s.mayBeGranted()
	}
	if !s.counts() && (errors.Is(err, recipes.ErrKindMismatch) || recipe.refused != nil && errors.Is(err, recipe.refused)) {
		s.leaveFirst(waiting)
	}
	err = s.meaning(err)
	if err != nil {
		return err
	}
	err = errInterrupted
	if err = s.keep(ctx); errors.Is(err, errGivenUp) {
		err = nil
	}
	return err
}

// boundWait gives the waiting an end of its own, without touching the stream's. Who held before the sidecar was started does not wait.
func (s *heldStream[P, M]) boundWait() (context.Context, context.CancelFunc) {
	if s.recipe.wait == nil || s.claim.held() {
		return context.WithCancel(s.over.ctx)
	}
	return context.WithTimeoutCause(s.over.ctx, *s.recipe.wait, errWaitTimeout)
}

// waitsFor is the kind that the stream's wait counts under.
func (s *heldStream[P, M]) waitsFor() string { return cmp.Or(s.recipe.waits, s.recipe.resource.kind) }

// take takes a place. That cannot be cancelled: if the stream ends first, giveUp waits for the place to leave it.
func (s *heldStream[P, M]) take(ctx context.Context, join func(recipes.About) (P, error)) (err error) {
	about := s.about()
	s.taking = run(func() (P, error) { return join(about) })
	if err := s.pause(ctx, wakers{s.taking.done}); err != nil {
		return err
	}
	s.place, err = s.taking.wait()
	return err
}

// leave gives the place up that the stream took.
func (s *heldStream[P, M]) leave(ctx context.Context) error {
	_, err := await(ctx, s, func(ctx context.Context) (left struct{}, _ error) {
		s.place.Leave(ctx)
		return left, nil
	})
	return err
}

// await runs one question to the ensemble beside the stream, so that the stream can end before there is an answer. The question's context is
// that of the waiting, and not its own: what it watches serves until that ends.
func await[T any, P heldPlace, M any](ctx context.Context, s *heldStream[P, M], ask func(context.Context) (T, error)) (T, error) {
	asked := run(func() (T, error) { return ask(ctx) })
	if err := s.pause(ctx, wakers{asked.done}); err != nil {
		s.calls = append(s.calls, asked.done)
		s.stopWaiting()
		var nothing T
		return nothing, err
	}
	answer, err := asked.wait()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, err
}

// outwait has whoever waits try again later if the ensemble did not answer: what the stream has is kept for as long as its lease
// lives.
func (s *heldStream[P, M]) outwait(ctx context.Context, err error) error {
	if errors.Is(err, recipes.ErrUnreachable) {
		return s.pause(ctx, wakers{after(countdown)})
	}
	return err
}

// pause returns when one of the wakers is closed, or with what ends the waiting.
func (s *heldStream[P, M]) pause(ctx context.Context, by wakers) error {
	stopping := s.lease.drain.notice
	if s.claim.held() {
		stopping = nil // it goes on until its lease ends, as holds do
	}
	select {
	case <-by[0]:
		return nil
	case <-by[1]:
		return nil
	case <-by[2]:
		return nil
	case <-by[3]:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stopping:
		return errStopping
	}
}

// meaning says what an error means to a caller that holds nothing yet: a lease of its own that is lost took nothing
// along, so that it can try again.
func (s *heldStream[P, M]) meaning(err error) error {
	lost := s.lease.lost()
	switch {
	case lost == nil:
		return err
	case errors.Is(err, errHoldStopped) && !s.counts():
		return errStopping
	case !errors.Is(err, recipes.ErrSessionEnded) && !errors.Is(err, recipes.ErrGone) && !errors.Is(err, errLeaseLost):
		return err
	case s.single:
		return errEnsembleLost
	}
	return lost
}

// keep tells the caller that it holds, and returns when it does not any more, with the reason; nil if it was released.
func (s *heldStream[P, M]) keep(ctx context.Context) error {
	announcement, first := s.recipe.begin(ctx)
	s.held = true
	s.claim.settled()
	s.connectivity = &connectivity{} // which the lease's stream tells
	if s.started == nil {
		s.connectivity = newConnectivity(s.lease.session)
	}
	defer s.connectivity.stop()
	if s.recipe.requested != nil {
		s.notice = s.lease.drain.notice
	}
	s.tell(topicPlace, func() M { return announcement })
	if s.connectivity.suspended {
		s.tellConnectivity()
	}
	looks, cancel := context.WithCancel(s.over.ctx)
	defer cancel()
	defer s.lookFirst(&first)()
	defer s.stopGrace()
	if why := s.see(first); why != nil {
		return why
	}
	for {
		if over, why := s.next(looks); over {
			return why
		}
	}
}

// next waits for one event and says whether it was the end.
func (s *heldStream[P, M]) next(looks context.Context) (over bool, why error) {
	select {
	case <-s.over.Done():
		return true, s.over.why()
	case <-s.place.Gone():
		return true, s.broken()
	case <-s.notice:
		s.notice = nil
		s.stopping()
	case <-s.connectivity.changed:
		s.lookAtConnectivity()
	case <-s.connectivity.tick:
		s.tellConnectivity()
	case <-s.changed:
		s.lookAgain(looks)
	case <-s.looked:
		why = s.consider()
	}
	return why != nil, why
}

func (s *heldStream[P, M]) lookAtConnectivity() {
	if s.connectivity.look() {
		s.tellConnectivity()
	}
}

// broken says why the place is gone: with the session, or by another hand.
func (s *heldStream[P, M]) broken() error {
	s.taken = true
	if why := s.lease.lost(); why != nil {
		return why
	}
	return s.recipe.removed
}

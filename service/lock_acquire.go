package service

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// acquireParams is an AcquireRequest whose fields are in order.
type acquireParams struct {
	heldParams

	name name
	mode recipes.Mode

	delay          time.Duration
	detectDeadlock bool
}

func parseAcquire(request *lockv1.AcquireRequest) (params acquireParams, err error) {
	if params.name, err = parseName("name", request.GetName()); err != nil {
		return params, err
	}
	if params.mode, err = parseMode(request.GetMode()); err != nil {
		return params, err
	}
	params.detectDeadlock = request.GetDetectDeadlock()
	params.heldParams, err = parseQueued(request)
	if err == nil {
		params.delay, err = parseLockDelay(request, params.mode)
	}
	return params, err
}

func parseLockDelay(request *lockv1.AcquireRequest, mode recipes.Mode) (time.Duration, error) {
	delay, err := parseDuration("lock_delay", request.GetLockDelay(), 0, recipes.MaxLockDelay)
	switch {
	case err != nil || delay == nil:
		return 0, err
	case *delay%time.Millisecond != 0:
		return 0, invalid("lock_delay", delay.String(), "whole milliseconds")
	case *delay > 0 && mode == recipes.Read:
		return 0, invalid("lock_delay", delay.String(), "omitted with READ: a holder after readers waits for no late write")
	}
	return *delay, nil
}

// A lockRequest is one request that stands in a lock's queue. M is what its caller is sent.
type lockRequest[M any] struct {
	*held[*recipes.Place, M]

	params acquireParams
	lock   recipes.Lock
	words  lockWords[M]

	turn    recipes.Turn  // as it stood last
	delay   time.Duration // that is left then
	news    queueNews[M]
	circle  circleWatch   // of one that has asked to be told
	granted *recipes.Hold // when it is its turn
}

// lockWords are what such a stream says.
type lockWords[M any] struct {
	heldWords[M]

	waits   string                                                                               // as of heldRecipe
	queued  func(turn recipes.Turn, delay time.Duration) (ageless proto.Message, event func() M) // of which the first tells one from another
	granted func(holdID string, token int64) M
}

// Acquire waits for the lock and holds it.
func (l *lockService) Acquire(request *lockv1.AcquireRequest, stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
	keepalive := &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, l.acquire)
}

func (l *lockService) acquire(request *lockv1.AcquireRequest, on line[*lockv1.AcquireResponse]) (holder, error) {
	params, err := parseAcquire(request)
	if err != nil {
		return nil, err
	}
	return takeLock(l.services, on, params, l.directory.lock(params.name), acquireWords)
}

// takeLock is a request that stands in a lock's queue. A caller that is one too many for the queue is told so before a session is opened for it.
func takeLock[M any](services *Services, on line[M], params acquireParams, lock recipes.Lock, words lockWords[M]) (holder, error) {
	a, recipe, err := newLockRequest(services, on, params, lock, words)
	if err != nil {
		return nil, err
	}
	if params.delay > 0 {
		recipe.letGo = func(ctx context.Context) { a.place.LetGo(ctx, services.ensemble) }
	} else {
		recipe.prompt = a
	}
	a.held = newHeld(services, on, recipe)
	return a.held, nil
}

// newLockRequest is such a request without what is held of it, and what that is made with.
func newLockRequest[M any](
	services *Services, on line[M], params acquireParams, lock recipes.Lock, words lockWords[M],
) (a *lockRequest[M], recipe heldRecipe[*recipes.Place, M], _ error) {
	of := resource{kindLock, params.name.text}
	waits, err := services.waiters.enter(on.claim.goesOn(), of)
	if err != nil {
		return nil, recipe, err
	}
	lock.Delay = params.delay
	a = &lockRequest[M]{params: params, lock: lock, words: words}
	return a, heldRecipe[*recipes.Place, M]{
		heldParams: params.heldParams, heldWords: words.heldWords, resource: of, waits: words.waits, wait: waits, waitsFor: "wait for the lock",
		steps: a, rejoin: a, removed: errLockBroken, revoked: errLockRevoked, refused: errLockHeld,
		asks: params.detectDeadlock,
	}, nil
}

// lockWordsOf are those of a stream that tells of its place in the queue as a lock's does.
func lockWordsOf[M proto.Message](waits string, granted func(holdID string, token int64) M) lockWords[M] {
	tell := eventOf[M, *holdv1.Queued]("queued")
	return lockWords[M]{
		heldWords: wordsOf[M](), waits: waits, granted: granted,
		queued: func(turn recipes.Turn, delay time.Duration) (proto.Message, func() M) {
			return queued(turn, 0, false), func() M { return tell(queued(turn, delay, true)) }
		},
	}
}

// acquireWords are those of a lock.
var acquireWords = lockWordsOf("", lockGranted)

func lockGranted(holdID string, token int64) *lockv1.AcquireResponse {
	made := new(struct { // in one piece, as there is one for each lock
		response lockv1.AcquireResponse
		event    lockv1.AcquireResponse_Granted
		granted  lockv1.Granted
	})
	made.response.Event, made.event.Granted = &made.event, &made.granted
	made.granted.HoldId, made.granted.FencingToken = holdID, token
	return &made.response
}

func (a *lockRequest[M]) join(ctx context.Context, about recipes.About) (*recipes.Place, error) {
	if a.params.delay > 0 {
		if err := a.lock.Keep(ctx, a.services.ensemble); err != nil {
			return nil, err
		}
	}
	return a.lock.Join(ctx, a.lease.session, a.params.mode, about)
}

func (a *lockRequest[M]) rejoin(session recipes.Adopter, standing []recipes.Standing, about recipes.About) (*recipes.Place, error) {
	return a.lock.Rejoin(session, standing[0], about)
}

func (a *lockRequest[M]) joinThen(about recipes.About, then func(*recipes.Place, error)) {
	a.lock.JoinThen(a.waits, a.lease.session, a.params.mode, about, then)
}

func (a *lockRequest[M]) atOnce() bool {
	a.granted = a.place.GrantAtOnce()
	return a.granted != nil
}

// ask asks whose turn it is, and has the place granted in one go if it is its own.
func (a *lockRequest[M]) ask(ctx context.Context) (turn, error) {
	if !a.stands() {
		shown, err := a.lookAtQueue(ctx)
		if err != nil || shown.granted || shown.moved {
			return shown, err
		}
	}
	switch {
	case a.claim.held(): // it stands where it stood, and others are before it: it never was its turn
		return turn{}, errLockBroken
	case a.params.once:
		return turn{}, heldBy(a.turn.Holders)
	case a.turn.First:
		ageless, event := a.words.queued(recipes.Turn{}, a.delay)
		return turn{tell: a.news.tell(a.put, 0, ageless, event), changed: []*recipes.Signal{a.turn.Marked}, pause: a.delay}, nil
	}
	return a.queued(ctx)
}

// stands says whether the place stands as it stood last, so that only the caller is to be told more.
func (a *lockRequest[M]) stands() bool {
	return a.turn.Changed != nil && !a.turn.Changed.IsGiven() && !a.turn.Marked.IsGiven()
}

func (a *lockRequest[M]) lookAtQueue(ctx context.Context) (shown turn, err error) {
	a.turn, err = a.place.Look(ctx)
	switch {
	case err != nil:
	case a.turn.Revocation.Break:
		err = errLockBroken
	case a.stepsBack(a.turn):
		a.place.Leave(ctx)
		a.turn, shown.moved = recipes.Turn{}, true
	case a.turn.First:
		if a.delay, err = a.place.OutwaitDelay(ctx, a.services.ensemble); err == nil && a.delay == 0 {
			a.granted, err = a.place.Grant(ctx)
			shown.granted = err == nil
		}
	}
	return shown, err
}

// queued tells a caller how it stands that has to wait, if it is time for that.
func (a *lockRequest[M]) queued(ctx context.Context) (shown turn, err error) {
	if err := a.lookForCircle(ctx); err != nil {
		return shown, err
	}
	glance := a.turn // of a place right behind the holder, Look has told everything
	if a.news.isDue(a.turn.Position) {
		if a.turn.Position > 1 {
			if glance, err = a.place.Glance(ctx); err != nil {
				return shown, err
			}
		}
		ageless, event := a.words.queued(glance, 0)
		shown.tell = a.news.tell(a.put, glance.Position, ageless, event)
	}
	shown.changed = []*recipes.Signal{a.turn.Changed, a.turn.Marked}
	shown.pause = sooner(a.news.left(a.turn.Position), a.circle.left())
	return shown, nil
}

// stepsBack says whether a candidate that waits is asked to make way for another one. Who was granted something by an earlier process does not
// wait.
func (a *lockRequest[M]) stepsBack(turn recipes.Turn) bool {
	return turn.Revocation.To != "" && !a.claim.held()
}

// heldBy says who else holds the lock, which whoever waits is told, too.
func heldBy(holders []recipes.Contender) error {
	for _, holder := range holders {
		text := ""
		if holder.Owner != "" {
			text = quoted(holder.Owner)
		}
		if holder.Identity != "" {
			text = strings.TrimPrefix(text+", identity "+quoted(holder.Identity), ", ")
		}
		if text != "" {
			facts := map[string]string{"holder": holder.Owner, "identity": holder.Identity}
			return &detailedError{kind: errLockHeld, facts: facts, text: text}
		}
	}
	return errLockHeld
}

// begin makes a hold of the granted place.
func (a *lockRequest[M]) begin(ctx context.Context) (M, nodeState) {
	id := a.beginHold(&hold{name: a.params.name, token: a.granted.Token, place: a.granted.Guard()})
	tellGrant(ctx, a.granted.Token)
	return a.words.granted(id, a.granted.Token), a.asks(a.granted.Revocation, a.granted.Changed)
}

// look asks what is asked of the hold.
func (a *lockRequest[M]) look(ctx context.Context) (nodeState, error) {
	revocation, changed, err := a.granted.Look(ctx)
	return a.asks(revocation, changed), err
}

// queued is how the lock stands for one who waits, for others or, ahead of all, for a delay; without ages where that is asked for.
func queued(turn recipes.Turn, delay time.Duration, ages bool) *holdv1.Queued {
	queued := &holdv1.Queued{Position: int32(turn.Position)}
	if delay > 0 {
		queued.LockDelay = durationpb.New(delay)
	}
	for _, holder := range turn.Holders {
		if !ages {
			holder.Age = 0
		}
		queued.Holders = append(queued.Holders, lockContender(holder))
	}
	return queued
}

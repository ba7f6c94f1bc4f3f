package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// mostPermits bounds how many permits one caller takes at a time: each has a node of its own.
const mostPermits = 64

// defaultQuarantine is for how long a number rests that was lost, unless its caller says otherwise.
const defaultQuarantine = time.Minute

// permitsParams is an AcquireRequest whose fields are in order.
type permitsParams struct {
	heldParams

	name  name
	count int

	numbered   bool
	quarantine time.Duration // of the number
}

func parsePermits(request *semaphorev1.AcquireRequest) (params permitsParams, err error) {
	if params.name, err = parseSemaphore(request.GetName()); err != nil {
		return params, err
	}
	params.count = max(1, int(request.GetPermits()))
	if request.GetPermits() < 0 || params.count > mostPermits {
		return params, invalid("permits", fmt.Sprint(request.GetPermits()), fmt.Sprintf("from 0 to %d", mostPermits))
	}
	if params.numbered, params.quarantine, err = parseNumbered(request); err != nil {
		return params, err
	}
	params.heldParams, err = parseQueued(request)
	return params, err
}

// parseNumbered says whether the permit shall bear a number, and for how long that rests when it was lost.
func parseNumbered(request *semaphorev1.AcquireRequest) (numbered bool, quarantine time.Duration, _ error) {
	numbered = request.GetNumbered()
	asked, err := parseDuration("quarantine", request.GetQuarantine(), 0, recipes.MaxQuarantine)
	switch {
	case err != nil:
		return false, 0, err
	case numbered && request.GetPermits() > 1:
		return false, 0, invalid("permits", fmt.Sprint(request.GetPermits()), "0 or 1 with numbered: a hold has one number")
	case !numbered && asked != nil:
		return false, 0, invalid("quarantine", asked.String(), "only with numbered")
	case asked == nil:
		return numbered, defaultQuarantine, nil
	}
	return numbered, *asked, nil
}

// A permitsRequest is one request for permits. Its place is one in the semaphore's queue, and then its permits.
type permitsRequest struct {
	*held[*recipes.Permits, *semaphorev1.AcquireResponse]

	params    permitsParams
	semaphore recipes.Semaphore

	turn recipes.PermitsTurn // as it stood last
	news queueNews[*semaphorev1.AcquireResponse]
}

// Acquire tells whoever is one too many for the semaphore's queue so before a session is opened for it.
func (m *semaphoreService) Acquire(request *semaphorev1.AcquireRequest, stream grpc.ServerStreamingServer[semaphorev1.AcquireResponse]) error {
	keepalive := &semaphorev1.AcquireResponse{Event: &semaphorev1.AcquireResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, m.acquire)
}

func (m *semaphoreService) acquire(request *semaphorev1.AcquireRequest, on line[*semaphorev1.AcquireResponse]) (holder, error) {
	params, err := parsePermits(request)
	if err != nil {
		return nil, err
	}
	of := resource{kindSemaphore, params.name.text}
	waits, err := m.services.waiters.enter(on.claim.goesOn(), of)
	if err != nil {
		return nil, err
	}
	p := &permitsRequest{params: params, semaphore: m.semaphore(params.name)}
	recipe := heldRecipe[*recipes.Permits, *semaphorev1.AcquireResponse]{
		heldParams: params.heldParams, heldWords: permitsWords, resource: of, wait: waits, waitsFor: "wait for permits",
		steps: p, rejoin: p, removed: errLockBroken, revoked: errLockRevoked, refused: errSemaphoreFull,
	}
	if params.numbered {
		p.semaphore.Numbers = &recipes.Numbering{Store: m.services.ensemble, Quarantine: params.quarantine}
		recipe.letGo = func(ctx context.Context) { p.place.LetGo(ctx) }
	}
	p.held = newHeld(m.services, on, recipe)
	return p.held, nil
}

var permitsWords = wordsOf[*semaphorev1.AcquireResponse]()

// join takes a place, unless what is wanted can never be granted.
func (p *permitsRequest) join(ctx context.Context, about recipes.About) (*recipes.Permits, error) {
	if err := p.lookAtLimit(ctx); err != nil {
		return nil, err
	}
	return p.semaphore.Join(ctx, p.lease.session, p.params.count, about)
}

func (p *permitsRequest) rejoin(session recipes.Adopter, standing []recipes.Standing, about recipes.About) (*recipes.Permits, error) {
	return p.semaphore.Rejoin(session, standing, p.params.count, about)
}

// lookAtLimit refuses what can never be granted. Who comes back to permits is asked no more.
func (p *permitsRequest) lookAtLimit(ctx context.Context) error {
	if p.claim != fresh {
		return nil
	}
	limit, _, err := p.semaphore.Admit(ctx, p.services.ensemble, p.params.count)
	if errors.Is(err, recipes.ErrTooManyPermits) {
		return p.tooMany(limit)
	}
	return p.naming(err)
}

// naming says which semaphore is missing.
func (p *permitsRequest) naming(err error) error { return Naming(err, []string{p.params.name.text}) }

func (p *permitsRequest) tooMany(limit int) error {
	return &detailedError{
		kind: recipes.ErrTooManyPermits, facts: map[string]string{"limit": fmt.Sprint(limit)},
		text: fmt.Sprintf("%d, and there are %d", p.params.count, limit),
	}
}

// ask asks whether the permits can be granted, and has that done.
func (p *permitsRequest) ask(ctx context.Context) (shown turn, err error) {
	p.turn, err = p.place.Look(ctx)
	resumed := p.claim.held()
	switch {
	case errors.Is(err, recipes.ErrTooManyPermits) && !resumed:
		return shown, p.tooMany(p.turn.Limit)
	case err == nil && p.turn.Asked.Break:
		return shown, errLockBroken
	case errors.Is(err, recipes.ErrTooManyPermits):
		return shown, errLockBroken // what was granted before the sidecar was started is too much now: the semaphore has shrunk
	case err != nil:
		return shown, p.naming(err)
	case p.turn.Granted:
		return turn{granted: true}, nil
	}
	shown.changed = []*recipes.Signal{p.turn.Changed, p.turn.Marked, p.turn.Resized}
	switch {
	case p.turn.Changed.IsGiven():
		return shown, nil
	case resumed:
		return shown, errLockBroken
	case p.params.once:
		if err := p.lookForRoom(ctx); err != nil {
			return turn{}, err
		}
	}
	if rank := p.turn.Position + 1; p.news.isDue(rank) {
		queued := &holdv1.Queued{Position: int32(p.turn.Position)}
		shown.tell = p.news.tell(p.put, rank, queued, func() *semaphorev1.AcquireResponse {
			return &semaphorev1.AcquireResponse{Event: &semaphorev1.AcquireResponse_Queued{Queued: queued}}
		})
	}
	shown.pause = p.news.left(p.turn.Position + 1)
	if !p.turn.Due.IsZero() {
		shown.pause = sooner(shown.pause, max(0, min(time.Until(p.turn.Due), lookAgain))+time.Millisecond)
	}
	return shown, nil
}

// lookForRoom refuses one who does not wait, unless there seem to be enough permits: then those before it in the queue are about to
// leave it.
func (p *permitsRequest) lookForRoom(ctx context.Context) error {
	if p.turn.Quarantined > 0 {
		return &detailedError{
			kind: errSemaphoreFull, facts: map[string]string{"quarantined": fmt.Sprint(p.turn.Quarantined)},
			text: fmt.Sprintf("no number is free, and %d are in quarantine", p.turn.Quarantined),
		}
	}
	if p.turn.Position == 0 {
		return errSemaphoreFull
	}
	hasRoom, err := p.semaphore.HasRoom(ctx, p.services.ensemble, p.params.count)
	if err == nil && !hasRoom {
		return errSemaphoreFull
	}
	return p.naming(err)
}

// begin makes a hold of the permits, and lets the next in the queue have its turn.
func (p *permitsRequest) begin(ctx context.Context) (*semaphorev1.AcquireResponse, nodeState) {
	id := p.beginHold(&hold{name: p.params.name, token: p.place.Token})
	go p.place.LeaveQueue(context.WithoutCancel(ctx)) // ends with the session at the latest
	granted := &semaphorev1.Granted{HoldId: id, Token: p.place.Token}
	if number, bears := p.place.Number(); bears {
		granted.Number = new(int32(number))
	}
	return &semaphorev1.AcquireResponse{Event: &semaphorev1.AcquireResponse_Granted{Granted: granted}},
		p.asks(p.turn.Asked, p.place.Changed())
}

// look asks what is asked of the hold.
func (p *permitsRequest) look(ctx context.Context) (nodeState, error) {
	revocation, changed, err := p.place.LookAgain(ctx)
	return p.asks(revocation, changed), err
}

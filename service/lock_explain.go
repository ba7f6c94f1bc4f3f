package service

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// mostExplainedWaiters is how many waiters of a lock an explanation shows, besides those in a circle.
const mostExplainedWaiters = 16

// Explain implements lockv1.LockServiceServer.
func (l *lockService) Explain(ctx context.Context, request *lockv1.ExplainRequest) (*lockv1.ExplainResponse, error) {
	names, err := l.toExplain(ctx, request)
	if err != nil {
		return nil, err
	}
	explained, err := l.services.waits().Explain(ctx, l.services.ensemble, names)
	if err != nil {
		return nil, err
	}
	e := &explaining{Explanation: explained, services: l.services, leases: map[int64]*lease{}, inCircle: map[int64]bool{}}
	for _, open := range l.services.leases.all() {
		e.leases[open.session.Key().ID] = open
	}
	return e.onWire(), nil
}

// toExplain are the locks that the explanation begins with: the one asked for, or those that the lease waits for.
func (l *lockService) toExplain(ctx context.Context, request *lockv1.ExplainRequest) ([]string, error) {
	number := request.GetLease()
	switch {
	case number == "":
		asked, err := l.directory.parseShown(request.GetName())
		return []string{asked.text}, err
	case request.GetName() != "":
		return nil, invalid("lease", number, "omitted with name")
	case len(number) != 8 || strings.Trim(number, "0123456789abcdef") != "":
		return nil, invalid("lease", number, "8 hexadecimal digits, in lower case")
	}
	for _, open := range l.services.leases.all() {
		if open.logID == number {
			return open.waitsFor(1).Locks, nil
		}
	}
	names, err := l.services.waits().LocksOf(ctx, l.services.ensemble, number)
	if err == nil && len(names) == 0 {
		return nil, errLeaseNotFound
	}
	return names, err
}

// An explaining is an explanation on its way to the wire.
type explaining struct {
	*recipes.Explanation

	services *Services
	leases   map[int64]*lease // of this sidecar, by session
	inCircle map[int64]bool   // sessions
}

func (e *explaining) onWire() *lockv1.ExplainResponse {
	response := &lockv1.ExplainResponse{Incomplete: e.Incomplete}
	for _, circle := range e.Cycles {
		links := each(circle, func(link recipes.Link) *lockv1.Link {
			e.inCircle[link.Session] = true
			return &lockv1.Link{
				Lease: link.Lease, Owner: link.Contender.Owner, WaitsFor: link.Lock, FencingToken: link.Contender.Token,
				Age: durationpb.New(link.Contender.Age),
			}
		})
		response.Cycles = append(response.Cycles, &lockv1.Cycle{Links: links})
	}
	for _, lock := range e.Locks {
		party := func(contender recipes.Contender) *lockv1.Party { return e.party(lock.Name, contender) }
		shown := &lockv1.ExplainedLock{Name: lock.Name, Holders: each(lock.Holders, party), UsualHold: e.services.usual.of(lock.Name)}
		for i, waiter := range lock.Waiters {
			if i < mostExplainedWaiters || e.inCircle[waiter.Session] {
				shown.Waiters = append(shown.Waiters, party(waiter))
			}
		}
		shown.WaitersOmitted = int32(lock.Omitted + len(lock.Waiters) - len(shown.GetWaiters()))
		response.Locks = append(response.Locks, shown)
	}
	return response
}

func (e *explaining) party(lock string, contender recipes.Contender) *lockv1.Party {
	waiting := e.Waiting[contender.Session]
	party := &lockv1.Party{Contender: lockContender(contender), Lease: waiting.Lease}
	for _, wanted := range waiting.Locks {
		if wanted != lock {
			party.WaitsFor = append(party.WaitsFor, wanted)
		}
	}
	if open := e.leases[contender.Session]; open != nil {
		suspended, _ := open.session.Suspended()
		party.Lease, party.Suspended = open.logID, &suspended
	}
	return party
}

// How many holds of how many locks are remembered, to say how long one usually takes.
const (
	usualHolds = 64
	usualLocks = 1000
)

// A usualHold remembers for how long locks were held, of the newest holds.
type usualHold struct {
	mu    sync.Mutex
	locks map[string][]time.Duration
}

func (u *usualHold) note(lock string, held time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.locks == nil {
		u.locks = map[string][]time.Duration{}
	}
	if _, known := u.locks[lock]; !known && len(u.locks) >= usualLocks {
		for other := range u.locks { // any
			delete(u.locks, other)
			break
		}
	}
	holds := u.locks[lock]
	u.locks[lock] = append(holds[max(0, len(holds)-usualHolds+1):], held)
}

// noteAll remembers how long the locks of a hold that has ended were held, if it was one of locks.
func (u *usualHold) noteAll(ended *hold) {
	if ended.kind != kindLock {
		return
	}
	held := time.Since(ended.granted)
	u.note(ended.name.text, held)
	for _, other := range ended.also {
		u.note(other.lock.text, held)
	}
}

// of is nil for a lock of which nothing is known.
func (u *usualHold) of(lock string) *lockv1.UsualHold {
	u.mu.Lock()
	holds := slices.Sorted(slices.Values(u.locks[lock]))
	u.mu.Unlock()
	if len(holds) == 0 {
		return nil
	}
	return &lockv1.UsualHold{
		Holds: int32(len(holds)), Median: durationpb.New(holds[(len(holds)-1)/2]), Longest: durationpb.New(holds[len(holds)-1]),
	}
}

package service

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/journal"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A caller whose connection is closed is dead, as far as this process knows, and loses everything at once; a caller whose sidecar has died
// counts on. So no caller may take the one for the other. Over a Unix socket none does that does not close its connection itself: only the end
// of this process closes it. Over TCP, what is between the two may: there is no lease to come back to.
//
// A lease outlives the sidecar's process as its session and what that owns do. The journal keeps the session's key, which is all that only
// the process knew: the ensemble lists what the session owns, each node says which request it is, and the caller says what it claims. What
// it claims to hold is held once more if its place stands and it is its turn still, as for any place: a caller can claim nothing that is not
// its own. Until it is told so, the caller counts on what the process before had told, which was told of a session that nobody has ended:
// a claim to hold ends as a hold does, however it ends, and its place is kept for as long as anybody may count on it.

// mostClaims is how many requests a lease is resumed with.
const mostClaims = 10000

// A claim is what a request of a lease that is resumed was before the sidecar was started. It is fresh of one that was begun since.
type claim struct {
	token    int64              // of what the caller says it was granted; 0 if it waits
	holdID   string             // of a lock or permits that were granted
	standing []recipes.Standing // its nodes: permits have several
	session  ReturnedSession
	shared   time.Time // when nobody counts any more who asked the process before over a connection of its own; zero if nobody did
	kind     string    // of the hold
	once     *attempt  // of a hold at work that is done once
	of       *started  // the request, once it has begun

	decided *latch // closed when its nodes are the request's again, or it has been told why not
	taken   func() // called when that is so, or they are gone
	settled func() // called when it is held again or has ended, or if it never was held
}

// fresh claims nothing.
var fresh = &claim{decided: newLatch(), taken: func() {}, settled: func() {}}

// held says whether the caller says that it was granted.
func (c *claim) held() bool { return c.token != 0 }

// goesOn says whether it is more than a request that the process before had not taken up. A sidecar that stops begins nothing, and does not
// end what it is to hand over.
func (c *claim) goesOn() bool { return c.held() || c.standing != nil }

// journal has a later process able to come back to the lease.
func (m *multiplex) journal() {
	made, options := m.lease, m.leases.services.options
	if options.Resumption == nil || !caller.Of(m.ctx).Unix {
		return
	}
	noted := m.noteOf(journal.Record{
		Identity: made.identity, Owner: made.about.Owner, Metadata: made.about.Metadata, Opened: made.opened, Session: made.session.Key(),
	})
	begun := noted.begin()
	if begun == nil || begun.abandoned {
		options.Events.LeaseNotNoted()
	}
	if begun != nil {
		made.mayReturn(begun, options.Resumption.HandOver)
	}
}

func (m *multiplex) noteOf(record journal.Record) *note {
	leases, made := m.leases.services.leases, m.lease
	n := &note{
		kept: leases.options.Resumption.Journal, key: made.key.full(), log: leases.options.Log.With(zap.String(leaseWord, made.logID)),
		own: caller.Of(m.ctx).Ending, disk: leases.disk, record: record, shared: newLatch(), forgotten: newLatch(),
	}
	if record.Shared {
		n.shared.close()
	}
	return n
}

// full is the whole digest.
func (d digest) full() string { return hex.EncodeToString(d[:]) }

// resume comes back to a lease of the process before. goOn goes on with what its caller claims of it.
func (m *multiplex) resume(request *leasev1.Resume) (goOn func() (decide func()), err error) {
	id, claims := request.GetLeaseId(), request.GetClaims()
	if err := parseID("lease_id", id); err != nil {
		return nil, err
	}
	if len(claims) > mostClaims {
		return nil, invalid("claims", strconv.Itoa(len(claims))+" claims", "at most 10,000")
	}
	numbers := map[uint64]bool{}
	for _, asked := range claims {
		number := asked.GetStart().GetRequestId()
		if number == 0 || numbers[number] {
			return nil, errRequestID(number)
		}
		numbers[number] = true
	}
	if err := m.stream.SendHeader(metadata.MD{}); err != nil {
		return nil, err
	}
	leave := m.leases.services.leases.returns.enter(caller.Of(m.ctx).Identity)
	standing, session, err := m.comeBack(id)
	if err != nil {
		leave()
	}
	return func() func() {
		defer leave()
		return m.goOn(claims, standing, session)
	}, err
}

// goOn goes on with what is claimed, each with its node, and lets go of the rest. The lease is not finished before both are in hand. It returns
// what waits until each claim has its nodes again, or is told why not: the caller is told nothing before on which it could count for it.
func (m *multiplex) goOn(claims []*leasev1.Claim, standing []recipes.Standing, session ReturnedSession) (decide func()) {
	var decided []*latch
	for _, asked := range claims {
		made := &claim{
			token: asked.GetToken(), holdID: asked.GetHoldId(), session: session, shared: m.shared,
			kind:    kindOf(asked.GetStart()),
			once:    (&onceService{services: m.leases.services}).attemptOf(asked),
			decided: newLatch(), taken: m.expectPlace(), settled: func() {},
		}
		if made.held() {
			made.settled = m.awaitHold()
		}
		made.standing, standing = split(standing, asked)
		decided = append(decided, made.decided)
		_ = m.start(asked.GetStart(), made) // it is in order
	}
	for _, left := range standing {
		gone := m.expectPlace()
		m.running.Go(func() {
			defer gone()
			m.giveUpUnclaimed(left)
		})
	}
	return func() {
		for _, each := range decided {
			select {
			case <-each.closed:
			case <-m.over.Done():
			case <-m.lease.over.Done():
			}
		}
	}
}

// expectPlace has the lease not finished before what the process before had on it is in hand, or gone.
func (m *multiplex) expectPlace() (inHand func()) {
	m.lease.streams.enter(math.MaxInt)
	m.lease.places.enter(math.MaxInt)
	return sync.OnceFunc(func() {
		m.lease.places.leave()
		m.lease.streams.leave()
	})
}

// split takes out of what stands the nodes that a claim is for: what was granted is known by its token, what waits by the request's number.
// Permits that were granted together have one number; with those of who waits, nothing was granted yet.
func split(standing []recipes.Standing, asked *leasev1.Claim) (claimed, rest []recipes.Standing) {
	request, token := asked.GetStart().GetRequestId(), asked.GetToken()
	permits := asked.GetStart().GetAcquirePermits() != nil
	for _, of := range standing {
		isAsked := recipes.RequestIn(of.Node) == request
		if !permits && token != 0 {
			isAsked = of.Node.Czxid == token
		} else if permits {
			isAsked = isAsked && recipes.IsPermit(of.Path) == (token != 0) || of.Node.Czxid == token
		}
		if isAsked {
			claimed = append(claimed, of)
		} else {
			rest = append(rest, of)
		}
	}
	return claimed, rest
}

// comeBack makes the lease of the record that the process before has left, which is used once.
func (m *multiplex) comeBack(id string) ([]recipes.Standing, ReturnedSession, error) {
	leases, from, key := m.leases.services.leases, caller.Of(m.ctx), digestOf(id)
	if leases.options.Resumption == nil || !from.Unix {
		return nil, nil, errLeaseNotFound
	}
	kept := leases.options.Resumption.Journal
	record, ok := kept.Claim(key.full(), from.Identity)
	if !ok {
		return nil, nil, errLeaseNotFound
	}
	var standing []recipes.Standing
	var session ReturnedSession
	about := recipes.About{Owner: record.Owner, Metadata: record.Metadata}
	made, err := leases.beginWith(m.ctx, from, about, record.Opened, func(ctx context.Context) (_ Session, err error) {
		session, standing, err = leases.options.Resumption.Reattach(ctx, record.Session)
		return session, err
	})
	switch {
	case errors.Is(err, recipes.ErrSessionEnded), errors.Is(err, recipes.ErrUnsafeTimeout):
		go leases.disk.ask(func() { kept.Remove(key.full()) }) // no other caller is handed it
		return nil, nil, errLeaseLost
	case err != nil:
		kept.Return(key.full(), record)
		return nil, nil, err
	}
	made.id, made.key = id, key
	m.lease = made
	made.mayReturn(m.noteOf(record), leases.options.Resumption.HandOver) // it is noted still
	made.heedDrain()
	leases.ids.enterAs(id, made.identity, made) // it is in no use: the record was handed out once
	made.drive.tell(0, from, time.Until(m.freeAt()))
	if record.Shared {
		m.shared = m.freeAt()
		made.drive.tell(0, caller.OutOfSight(), time.Until(m.shared))
	}
	leases.options.Log.Info("lease resumed", made.fields()...)
	return standing, session, nil
}

// freeAt is when nobody counts any more on what the process before had told.
func (m *multiplex) freeAt() time.Time {
	timeout := m.lease.session.Timeout()
	return m.leases.services.options.Resumption.Journal.TellingsEnd(timeout + timeout/machine.Clocks)
}

// giveUpUnclaimed lets go of what nobody claims: at once if its caller has come back without claiming it, and otherwise when nobody counts
// on it any more, whom the process before may have told, or has told, over a connection of its own.
func (m *multiplex) giveUpUnclaimed(left recipes.Standing) {
	published := strings.HasPrefix(left.Path, m.leases.services.options.WaitRoot+"/") // on which nobody counts
	if (recipes.RequestIn(left.Node) == 0 || !m.shared.IsZero()) && !published {
		select {
		case <-after(time.Until(m.freeAt())):
		case <-m.lease.session.Done():
		}
	}
	m.remove(left)
}

// decide says that what is claimed has its nodes again, or never will.
func (s *started) decide() {
	s.claim.decided.close()
	s.claim.settled()
}

// giveUpClaim lets go of what is claimed by a request that was refused before its stream had it in hand.
func (s *started) giveUpClaim() {
	if s.endedAs != nil {
		defer s.leases.services.forgoHold(s.endedAs)
	}
	if s.claim == fresh || s.inHand {
		return
	}
	defer s.claim.taken()
	left := make(chan struct{})
	s.lease.drive.afterLeft(s.life, func() { close(left) })
	<-left
	for _, left := range s.claim.standing {
		s.remove(left)
	}
}

// remove deletes a node of the session's that nobody has adopted.
func (m *multiplex) remove(left recipes.Standing) {
	options := m.leases.services.options
	for _, root := range []string{options.GroupRoot, options.QueueRoot, options.BarrierRoot} { // where names may be given again
		if strings.HasPrefix(left.Path, root+"/") {
			m.lease.session.Delete(m.ctx, left.Path)
			return
		}
	}
	m.lease.session.Dequeue(m.ctx, left.Path)
}

// take takes a place: the first time that which the request had before the sidecar was started, if it had one.
func (s *held[P, M]) take(again bool) (place P, err error) {
	switch {
	case !again && s.claim.standing != nil:
		if place, err = s.recipe.rejoin.rejoin(s.claim.session, s.claim.standing, s.about()); err == nil {
			s.claim.decided.close()
		}
		return place, err
	case s.claim.held():
		return place, recipes.ErrGone
	}
	s.claim.decided.close()
	return s.recipe.join(s.waits, s.about())
}

// counts says whether the caller may count on what the stream has: it holds, or held before the sidecar was started.
func (s *held[P, M]) counts() bool { return s.begun || s.claim.held() }

// comeBack has the stream have in hand what is claimed.
func (s *held[P, M]) comeBack() {
	if s.claim == fresh {
		return
	}
	s.claim.of.inHand = true
	s.claim.taken()
	if !s.claim.shared.IsZero() {
		s.lease.drive.tell(s.id, caller.OutOfSight(), time.Until(s.claim.shared))
	}
}

// giveUpUnreturned lets go of what was claimed and has not become the stream's place.
func (s *held[P, M]) giveUpUnreturned() {
	for _, left := range s.claim.standing {
		s.claim.of.remove(left)
	}
}

// handOver drains the leases that nobody can resume, and returns when they are closed.
func (s *Services) handOver(ctx context.Context, timeout time.Duration) error {
	finishing := time.AfterFunc(timeout, s.drain.finish)
	defer finishing.Stop()
	const again = 100 * time.Millisecond
	for left := s.leases.unresumable(); left != nil; left = s.leases.unresumable() {
		select {
		case <-left.gone:
		case <-after(again): // it may be noted by then
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case <-s.issuers.fetches.empty():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// unresumable is one of the leases that nobody can resume, or have ended; nil if there is none.
func (l *leases) unresumable() *lease {
	for _, each := range l.all() {
		each.mu.Lock()
		goes := !each.resumable() || each.why != nil
		each.mu.Unlock()
		if goes {
			return each
		}
	}
	return nil
}

package zookeeper

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// startPulse has heartbeats prove the session for as long as it lives; see pulse. Its handshake has just proved it. It returns false if the
// session has ended.
func (s *Session) startPulse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.life.startPulse(s.now(), s.generation, s.client.random.Float64)
		s.beats = time.AfterFunc(s.interval, s.beat)
	}
	return s.err == nil
}

// summon has the session look soon whether a heartbeat is due.
func (s *Session) summon() {
	s.summoned.Store(true)
	if s.beats != nil {
		s.beats.Reset(0)
	}
}

// beat does what is due about the session's heartbeats.
func (s *Session) beat() { s.pulsed(func(instant) effects { return 0 }) }

// pulsed has the session's life take in what has happened to a heartbeat, and does what follows. It waits for nothing.
func (s *Session) pulsed(event func(now instant) effects) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	now := s.now()
	s.follow(event(now), now)
	if s.stage == resting && (s.summoned.Swap(false) || s.isDue(now, s.generation)) {
		s.look(now, s.generation, s.lookAround(now))
	}
	what := s.tick(now, s.generation, s.connected)
	s.follow(what, now)
	next := heartbeat{session: s, round: s.pulse.round, with: s.roundWith, wire: s.wire, generation: s.generation}
	s.beats.Reset(s.nextTick().since(now))
	if s.stage == resting && s.summoned.Load() { // and the timer may have been moved back
		s.beats.Reset(0)
	}
	s.mu.Unlock()
	if what&drops != 0 {
		next.wire.drop()
	}
	if what&asks != 0 {
		next.send()
	}
}

// lookAround is what the session's life does not know. One that falls asleep proves itself alone. The lock is held.
func (s *Session) lookAround(now instant) surroundings {
	in := s.surroundings()
	in.findsOut = func() bool { return s.findsOut(now) }
	if s.sleeps(now, in) && !s.asleep {
		s.part()
		s.asleep = true
		trace.Tell(trace.Step{Kind: trace.Slept, Session: s.id})
	}
	s.roundWith = s.joinSharedProof()
	in.leads, in.accompanied, in.proved = s.roundWith.roleOf(s, now)
	return in
}

// surroundings is what a heartbeat is rested after with. The lock is held.
func (s *Session) surroundings() surroundings {
	return surroundings{maySleep: s.maySleep(), reachedUntil: s.reachedUntil}
}

// A heartbeat is one that is sent, or about to be.
type heartbeat struct {
	session    *Session
	round      round
	with       *sharedProof
	wire       *wire
	generation int
	sent       instant
	checks     []check
}

// send asks for the places that are due, if it is for that, over the connection that was the present one when it was decided on.
func (h heartbeat) send() {
	s := h.session
	if h.round.kind == proves {
		h.checks = s.checks(h.round.began, h.others(h.round.beats))
	}
	h.sent = s.now()
	b := newBatch(func(b *batch) { h.answered(&b.requests[0]) }, h.request())
	b.asked.sent = h.sent
	if !h.wire.sendAtOnce(b, math.MaxInt) {
		h.answered(&ownRequest{err: zk.ErrConnectionClosed})
	}
}

// others are those whose places are asked for, too, after so many heartbeats of the round. What is left then is asked for in the next one.
func (h heartbeat) others(beats int) *sharedProof {
	if beats >= mostSharedBeats {
		return nil
	}
	return h.with
}

// provesOthers says whether those with whom it was sent are proved by it.
func (h heartbeat) provesOthers() bool {
	return h.with != nil && (h.round.kind == proves || h.round.kind == repeats)
}

// isRead says whether it is no transaction, which is how heartbeats are with static proof.
func (h heartbeat) isRead() bool { return h.round.kind == reads || h.session.proof.static }

// request is what is asked.
func (h heartbeat) request() ownRequest {
	if h.isRead() {
		return existsOf(readBy(h.checks))
	}
	return multiOf(operationsOf(h.checks)...)
}

// told is what was answered to it.
func (h heartbeat) told(request *ownRequest) (answer, error) {
	if h.isRead() {
		return toldByRead(h.checks, request)
	}
	told, err := toldByMulti(h.checks, request)
	if isCommitted(err) {
		err = nil
	}
	return told, err
}

// answered takes the answer, or that there is none.
func (h heartbeat) answered(request *ownRequest) {
	s, took := h.session, exchange{sent: h.sent, answered: h.session.now()}
	told, err := h.told(request)
	if h.round.kind == reads {
		s.client.config.Observe(context.Background(), "exists", took.answered.since(took.sent), err != nil)
	} else {
		s.client.config.Observe(context.Background(), "heartbeat", took.answered.since(took.sent), err != nil)
	}
	if err != nil {
		s.pulsed(s.unanswered)
		return
	}
	s.answered(h, took, told)
	more := h.round.kind == proves && len(s.checks(h.round.began, h.others(h.round.beats+1))) > 0
	s.pulsed(func(now instant) effects { return s.heard(now, more, s.surroundings()) })
}

// isCommitted says whether an answer to a transaction shows that it was committed, with whatever verdict. That it is denied shows nothing,
// unless it was a part of a multi: a server whose zookeeper.enableEagerACLCheck is set denies the others by itself.
func isCommitted(err error) bool {
	if err == nil {
		return true
	}
	for _, verdict := range []error{
		recipes.ErrNoNode, recipes.ErrExists, recipes.ErrNotEmpty, recipes.ErrBadVersion, recipes.ErrDenied,
		zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrBadVersion,
	} {
		if errors.Is(err, verdict) {
			return true
		}
	}
	return false
}

// committed counts a transaction that the session has asked for besides its heartbeats, and which was sent and answered on the connection
// of that number. It was sent at the given time or later.
func (s *Session) committed(generation int, sent instant) {
	if s.proof.static {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answered := s.now(); generation == s.generation && answered < s.overAt() {
		s.proved(exchange{sent: sent, answered: answered})
	}
}

// proved counts a committed request of the present connection. The lock is held.
func (s *Session) proved(request exchange) {
	changed := s.life.proved(request)
	s.tellProof(trace.Proved, request, 0)
	s.attempts = 0
	s.noteReach(request.sent)
	if s.asleep {
		now := s.now()
		s.follow(s.endSleep(now), now)
	}
	if changed {
		s.change()
	}
}

// commit sends a transaction that changes nothing. Only transactions pass through the quorum.
func (s *Session) commit(path string) error {
	_, err := s.commitThen(path)
	return err
}

// commitThen is commit with other requests behind it, whose answers it returns if the transaction was answered.
func (s *Session) commitThen(path string, others ...ownRequest) ([]ownRequest, error) {
	check := checkOf(path, anyVersion)
	answered, err := s.askOwn(append([]ownRequest{multiOf(check)}, others...)...)
	if answered == nil {
		return nil, err
	}
	if err == nil {
		_, err = resultsIn(answered[0].answer, []operation{check})
	}
	return answered[1:], err
}

// answered counts a heartbeat, unless it crossed a change of the connection, or came too late to count. What it has found of
// the places counts whichever connection it came over.
func (s *Session) answered(beat heartbeat, took exchange, told answer) {
	s.mu.Lock()
	late, why := s.now() >= s.overAt(), s.overdue()
	counts := beat.generation == s.generation && !late
	if !late {
		s.take(told.of(s), took.sent)
	}
	if counts {
		s.count(beat.round.kind, took)
	}
	shown := sharedHeartbeat{by: s.id, of: s.proof.before.sent, from: s.proof.attached.answered, sent: took.sent}
	provesOthers := counts && beat.provesOthers() && s.sharedProof == beat.with
	s.mu.Unlock()
	if provesOthers {
		beat.with.proveOthers(s, shown, told)
	}
	if late {
		s.lose(why)
	}
}

// count counts a heartbeat. The lock is held.
func (s *Session) count(kind beatKind, took exchange) {
	if kind != reads {
		s.proved(took)
		s.plain = 0
		return
	}
	s.proof.answeredRequest(took)
	s.plain = took.sent
	if s.asleep {
		s.attempts = 0
	}
	s.tellProof(trace.Read, took, 0)
}

// rest waits, but not across a change of the connection, nor longer than the session lasts.
func (s *Session) rest(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	before, changed := s.connection()
	for generation := before; generation == before; generation, changed = s.connection() {
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-s.over.Done():
			return
		}
	}
}

// checkDeadline ends the session if its deadline has passed, and otherwise sets the timer for it.
func (s *Session) checkDeadline() {
	s.mu.Lock()
	remaining, why := s.overAt().since(s.now()), s.overdue()
	if remaining > 0 && s.err == nil {
		s.guard.Reset(remaining)
	}
	s.mu.Unlock()
	if remaining <= 0 {
		s.lose(why)
	}
}

// Prove returns when the session's validity is running and no heartbeat is late. It wakes a session that sleeps.
func (s *Session) Prove(ctx context.Context) error {
	for {
		s.wake()
		suspended, changed := s.Suspended()
		if s.ValidFor() > 0 && !suspended {
			return nil
		}
		select {
		case <-changed:
		case <-s.over.Done():
			return s.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

var _ recipes.Session = (*Session)(nil)

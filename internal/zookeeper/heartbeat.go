package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// jitter is by how much of itself the interval between two heartbeats varies, so that a thousand leases spread.
const jitter = 0.1

// heartbeatLoop proves the session for as long as it lives: one heartbeat at a time, each sent after the one before was answered,
// about every interval, and at once on a new connection; none while other transactions do the same. The prober of other sessions sends twice
// as many, and they two thirds. The handshake has just proved the session.
func (s *Session) heartbeatLoop() {
	defer s.work.Done()
	interval, failures, failing := s.interval, 0, instant(0)
	pause := interval
	generation, _ := s.connection()
	for s.restSince(generation, pause, s.summoned) {
		asleep, with := s.sleeps(), s.joinSharedProof()
		leads := with.isLedBy(s)
		if failures == 0 && !leads && asleep == s.Asleep() {
			if generation, pause = s.spared(interval); pause > 0 {
				continue
			}
		}
		began := s.now()
		var err error
		if generation, err = s.prove(began, asleep, with); err == nil {
			failures, interval = 0, s.nextInterval(leads)
			pause = s.pauseAfter(began, interval, leads)
		} else {
			if failures++; failures == 1 {
				failing = began
			}
			pause = s.failed(failures, failing)
			if leads && failures == 1 {
				with.pass(s)
			}
		}
		s.checkDeadline()
	}
}

// pauseAfter is how long to wait after a heartbeat that began then and was answered.
func (s *Session) pauseAfter(began instant, interval time.Duration, leads bool) time.Duration {
	pause := max(time.Millisecond, s.together(began.add(interval)).since(s.now()))
	_, spared := s.spared(interval)
	switch {
	case leads:
		return pause
	case s.Asleep() && s.sleeps():
		return min(pause, max(time.Millisecond, spared))
	case s.Asleep():
		return min(pause, s.whileItWakes())
	case spared > 0:
		return min(pause, spared)
	case s.isPlain():
		return time.Millisecond // the next one is not
	}
	return pause
}

// nextInterval is how long after a heartbeat the next one is sent, if not sooner to be sent together with others.
func (s *Session) nextInterval(leads bool) time.Duration {
	s.mu.Lock()
	interval := s.life.nextInterval(leads)
	s.mu.Unlock()
	return spread(interval, sooner-jitter+(2*jitter-sooner)*s.client.random.Float64())
}

// sooner is by how much of the interval a heartbeat is sent sooner, at most, to be sent together with others of the sidecar, which wakes up
// once for all of them.
const sooner = 1.0 / 64

// spared is for how long no heartbeat is needed, if for a millisecond at least.
func (s *Session) spared(interval time.Duration) (generation int, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.brief {
		return s.generation, 0
	}
	if pause = s.nextDue(interval, s.reachedUntil).since(s.now()); pause < time.Millisecond {
		pause = 0
	}
	return s.generation, pause
}

// failed takes in that a heartbeat has failed, as so many have one after the other since then: that is as late as one that is not
// answered. It returns for how long to wait on the same connection: full jitter, doubling.
func (s *Session) failed(failures int, since instant) (pause time.Duration) {
	if s.now().since(since) >= s.interval {
		s.suspend()
	}
	return time.Millisecond + s.client.upTo(min(time.Millisecond<<min(failures, 10), s.interval/2))
}

// rest waits, but not across a change of the connection, nor longer than the session lasts.
func (s *Session) rest(pause time.Duration) {
	generation, _ := s.connection()
	s.restSince(generation, pause, nil)
}

// restSince waits until it is summoned, but not if the connection is another one than before, or becomes another. It returns false when the
// session has ended.
func (s *Session) restSince(before int, pause time.Duration, summoned <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	generation, changed := s.connection()
	for generation == before {
		select {
		case <-timer.C:
			return true
		case <-summoned:
			return s.Err() == nil
		case <-changed:
		case <-s.over.Done():
			return false
		}
		generation, changed = s.connection()
	}
	return s.Err() == nil
}

// prove has the session proved: by itself, with those that it proves, or by another one, for which a plain read is enough, as for one that
// sleeps at a server that reaches the leader.
func (s *Session) prove(round instant, asleep bool, with *sharedProof) (generation int, err error) {
	if asleep && s.findsOut() {
		return s.heartbeat(nil, false, nil)
	}
	if asleep || s.borrows(with) {
		generation, err = s.heartbeat(nil, true, nil)
		if suspended, _ := s.Suspended(); err != nil || !suspended {
			return generation, err
		}
	}
	lacks := s.lacksOneBefore(with, round)
	generation, err = s.heartbeatRound(round, with)
	if err == nil && lacks {
		generation, err = s.heartbeat(nil, false, with)
	}
	return generation, err
}

// heartbeatRound sends one heartbeat, or as many as it takes to ask for every place.
func (s *Session) heartbeatRound(round instant, with *sharedProof) (generation int, err error) {
	for beats, places := 1, with; ; beats++ {
		generation, err = s.heartbeat(s.checks(round, places), false, with)
		if beats == mostSharedBeats {
			places = nil // what is left of the others'
		}
		if err != nil || len(s.checks(round, places)) == 0 {
			return generation, err
		}
	}
}

// heartbeat sends one heartbeat and counts its answer. One that is not answered for an interval makes the session
// suspended; half an interval later the connection is given up for one to the next server, and so is each later one that the library
// has carried it over to: what it has not written to one connection it writes to the next. A plain one is a read, which counts as one.
func (s *Session) heartbeat(checks []check, plain bool, with *sharedProof) (generation int, err error) {
	late := time.AfterFunc(s.interval, s.suspend)
	defer late.Stop()
	if with.isLedBy(s) {
		defer time.AfterFunc(s.interval/2, func() { with.pass(s) }).Stop()
	}
	generation, err = s.awaitConnected()
	if err != nil {
		return generation, err
	}
	sent := s.now()
	defer s.giveUpWhenStuck(sent)()
	told, err := s.sendHeartbeat(checks, plain)
	answered := s.now()
	if plain {
		s.client.config.Observe(context.Background(), "exists", answered.since(sent), err != nil)
	} else {
		s.client.config.Observe(context.Background(), "heartbeat", answered.since(sent), err != nil)
	}
	if err != nil {
		return generation, err
	}
	s.answered(generation, exchange{sent: sent, answered: answered}, told, plain, with)
	return generation, nil
}

// sendHeartbeat is one request that proves the session: a transaction with the checks, or a plain read.
func (s *Session) sendHeartbeat(checks []check, plain bool) (answer, error) {
	if s.proof.static || plain {
		return s.read(checks)
	}
	told, err := s.commitChecks(checks)
	if isCommitted(err) {
		err = nil
	}
	return told, err
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
func (s *Session) answered(generation int, heartbeat exchange, told answer, plain bool, with *sharedProof) {
	s.mu.Lock()
	late, why := s.now() >= s.overAt(), s.overdue()
	counts := generation == s.generation && !late
	switch {
	case late:
	case with == nil:
		s.take(told, heartbeat.sent)
	default:
		s.take(told.of(s), heartbeat.sent)
	}
	switch {
	case counts && plain:
		s.proof.answeredRequest(heartbeat)
		s.plain = heartbeat.sent
		if s.asleep {
			s.attempts = 0
		}
		s.tellProof(trace.Read, heartbeat, 0)
	case counts:
		s.proved(heartbeat)
		s.plain = 0
	}
	shown := sharedHeartbeat{by: s.id, of: s.proof.before.sent, from: s.proof.attached.answered, sent: heartbeat.sent}
	provesOthers := counts && !plain && with != nil && s.sharedProof == with
	s.mu.Unlock()
	if provesOthers {
		with.proveOthers(s, shown, told)
	}
	if late {
		s.lose(why)
	}
}

func (s *Session) suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && !s.suspended {
		s.suspended = true
		s.change()
		if !s.doubted {
			s.client.config.Late()
		}
	}
}

// giveUpWhenStuck closes every connection on which the heartbeat of that time goes unanswered for one and a half intervals, until it is
// told to stop.
func (s *Session) giveUpWhenStuck(asked instant) (stop func()) {
	limit, done := s.interval*3/2, false
	var timer *time.Timer
	look := func() {
		s.mu.Lock()
		left, w := limit-s.now().since(max(asked, s.proof.attached.answered)), s.wire
		stuck := left <= 0 && s.connected && !done
		if left <= 0 {
			left = limit
		}
		if !done && s.err == nil {
			timer.Reset(left)
		}
		s.mu.Unlock()
		if stuck {
			w.drop()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	timer = time.AfterFunc(limit, look)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		done = true
		timer.Stop()
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

package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// jitter is by how much of itself the interval between two heartbeats varies, so that a thousand leases spread.
const jitter = 0.1

// heartbeatLoop proves the session for as long as it lives: one heartbeat at a time, each sent after the one before was answered,
// about every interval, and at once on a new connection. The handshake has just proved the session.
func (s *Session) heartbeatLoop() {
	defer s.work.Done()
	pause, failures, failing := s.interval, 0, instant(0)
	generation, _ := s.connection()
	for s.restSince(generation, pause) {
		began := s.now()
		var err error
		if generation, err = s.heartbeatRound(began); err == nil {
			failures = 0
			spread := 1 + jitter*(2*s.client.random.Float64()-1)
			pause = max(time.Millisecond, time.Duration(spread*float64(s.interval))-s.now().since(began))
		} else {
			if failures++; failures == 1 {
				failing = began
			}
			pause = s.failed(failures, failing)
		}
		s.checkDeadline()
	}
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
	s.restSince(generation, pause)
}

// restSince waits, but not if the connection is another one than before, or becomes another. It returns false when the session has
// ended.
func (s *Session) restSince(before int, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	generation, changed := s.connection()
	for generation == before {
		select {
		case <-timer.C:
			return true
		case <-changed:
		case <-s.done:
			return false
		}
		generation, changed = s.connection()
	}
	return s.Err() == nil
}

// heartbeatRound sends one heartbeat, or as many as it takes to ask for every place.
func (s *Session) heartbeatRound(round instant) (generation int, err error) {
	for {
		generation, err = s.heartbeat(s.checks(round))
		if err != nil || len(s.checks(round)) == 0 {
			return generation, err
		}
	}
}

// heartbeat sends one heartbeat and counts its answer. One that is not answered for an interval makes the session
// suspended; half an interval later the connection is given up for one to the next server, and so is each later one that the library
// has carried it over to: what it has not written to one connection it writes to the next.
func (s *Session) heartbeat(checks []check) (generation int, err error) {
	late := time.AfterFunc(s.interval, s.suspend)
	defer late.Stop()
	generation, err = s.awaitConnected()
	if err != nil {
		return generation, err
	}
	sent := s.now()
	defer s.giveUpWhenStuck(sent)()
	told, err := s.sendHeartbeat(checks)
	answered := s.now()
	s.client.config.Observe(context.Background(), "heartbeat", answered.since(sent), err != nil)
	if err != nil {
		return generation, err
	}
	s.answered(generation, exchange{sent: sent, answered: answered}, told)
	return generation, nil
}

// sendHeartbeat is one request that proves the session: a transaction with the checks, or a plain read.
func (s *Session) sendHeartbeat(checks []check) (answer, error) {
	if s.proof.static {
		return s.read(checks)
	}
	told, err := s.commitChecks(checks)
	for _, verdict := range []error{recipes.ErrNoNode, recipes.ErrBadVersion, recipes.ErrDenied, zk.ErrNoNode, zk.ErrNoAuth} {
		if errors.Is(err, verdict) {
			return told, nil // the transaction was committed, with whatever verdict
		}
	}
	return told, err
}

// commit sends a transaction that changes nothing. Only transactions pass through the quorum.
func (s *Session) commit(path string) error {
	_, err := s.conn.Multi(&zk.CheckVersionRequest{Path: path, Version: -1})
	return err
}

// answered counts a heartbeat, unless it crossed a change of the connection, or came too late to count. What it has found of
// the places counts whichever connection it came over.
func (s *Session) answered(generation int, heartbeat exchange, told answer) {
	s.mu.Lock()
	late, why := heartbeat.answered >= s.validUntil(), s.overdue()
	if !late {
		s.take(told, heartbeat.sent)
	}
	if generation == s.generation && !late {
		s.proof.answeredHeartbeat(heartbeat)
		s.attempts = 0
		if s.suspended {
			s.suspended = false
			s.change()
		}
	}
	s.mu.Unlock()
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
		s.client.config.Late()
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
	remaining, why := s.validUntil().since(s.now()), s.overdue()
	if remaining > 0 && s.err == nil {
		s.guard.Reset(remaining)
	}
	s.mu.Unlock()
	if remaining <= 0 {
		s.lose(why)
	}
}

// Prove returns when the session's validity is running and no heartbeat is late.
func (s *Session) Prove(ctx context.Context) error {
	for {
		suspended, changed := s.Suspended()
		if s.ValidFor() > 0 && !suspended {
			return nil
		}
		select {
		case <-changed:
		case <-s.done:
			return s.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

var _ recipes.Session = (*Session)(nil)

package dev

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/service"
)

// An ensemble is the services' view of a zookeeper.Client, with faults.
type ensemble struct {
	*zookeeper.Client

	faults *faults
}

// Open implements service.Ensemble.
func (e ensemble) Open(ctx context.Context, timeout time.Duration) (service.Session, error) {
	opened, err := e.OpenPooled(ctx, timeout)
	if err != nil {
		return nil, err
	}
	s := &session{PooledSession: opened, faults: e.faults}
	if age := e.faults.ExpireAfter; age > 0 {
		s.aging = time.AfterFunc(age, s.expire)
	}
	return s, nil
}

// A session is a zookeeper.PooledSession to which faults happen.
type session struct {
	*zookeeper.PooledSession

	faults  *faults
	aging   *time.Timer // nil if it does not expire by itself
	expired atomic.Bool // as its client knows; for the ensemble it lives until it is closed
}

// expire has the ensemble tell the sidecar that the session has expired. The ensemble deletes what it owned when the
// sidecar has told its callers, for a session never expires there before it is lost here: see internal/zookeeper.
func (s *session) expire() {
	s.expired.Store(true)
	_ = s.faults.memory.Condemn(s.ID()) // it is over already
}

// Close implements service.Session.
func (s *session) Close(ctx context.Context) {
	if s.aging != nil {
		s.aging.Stop()
	}
	if !s.expired.Load() {
		s.PooledSession.Close(ctx)
	}
	if s.expired.Load() {
		s.Session.Close(ctx)
		_ = s.faults.memory.Expire(s.ID()) // it is over already
	}
}

// Prove implements service.Session. Recipes ask for it when it is a place's turn, and grant the lock then.
func (s *session) Prove(ctx context.Context) error {
	if delay := time.Duration(s.faults.delay.Load()); delay > 0 {
		if err := s.wait(ctx, delay); err != nil {
			return err
		}
	}
	return s.PooledSession.Prove(ctx)
}

func (s *session) wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

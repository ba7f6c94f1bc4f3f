package service_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/traces"
)

// A simulatedStream is an Acquire stream whose caller leaves some time after it was granted the lock, and asks until then whether it holds it.
type simulatedStream struct {
	grpc.ServerStream
	*play
	ctx      context.Context
	cancel   context.CancelFunc
	sidecar  *simulatedSidecar
	patience time.Duration
	asks     time.Duration // how often
	hears    bool          // it acknowledges an end that it did not ask for
	mode     holdv1.Mode
	on       standing
	hold     string
	token    int64
	ended    chan struct{}
	asking   sync.WaitGroup
}

// A standing is what a stream stands on: a lease, or nothing if it has one of its own.
type standing struct {
	left    context.Context // over when the caller has left the lease; nil without lease
	lease   string
	session int64 // of the lease; 0 if it is over
}

// left says whether the caller has left the stream or its lease. A stream's own context may end some time after its lease's.
func (s *simulatedStream) left() bool {
	return s.ctx.Err() != nil || s.on.left != nil && s.on.left.Err() != nil
}

func (s *simulatedStream) Context() context.Context     { return s.ctx }
func (s *simulatedStream) SendHeader(metadata.MD) error { return nil }
func (s *simulatedStream) Send(m *lockv1.AcquireResponse) error {
	if granted := m.GetGranted(); granted != nil {
		s.hold, s.token = granted.GetHoldId(), granted.GetFencingToken()
		s.enter(s, granted.GetFencingToken())
		s.asking.Go(s.ask)
	}
	return nil
}

// ask asks for the hold again and again, and acknowledges its end some time after that.
func (s *simulatedStream) ask() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.ended:
			if s.hears {
				time.Sleep(s.asks / 4)
				_, _ = s.sidecar.locks.Release(s.ctx, &lockv1.ReleaseRequest{HoldId: s.hold}) // says how the hold has ended
			}
			return
		case <-time.After(s.asks):
			s.check()
		}
	}
}

// check asks whether the hold is valid or, where it stands on a lease that stays the same, whether that is.
func (s *simulatedStream) check() {
	if s.on.session != 0 && s.token%2 == 0 {
		told, err := s.sidecar.leases.Check(s.ctx, &leasev1.CheckRequest{LeaseId: s.on.lease})
		if err == nil { // else it says that the lease is over
			trace.Tell(trace.Step{Kind: traces.Heard, Session: s.on.session, Until: told.GetValidFor().AsDuration()})
		}
		return
	}
	told, err := s.sidecar.locks.Check(s.ctx, &lockv1.CheckRequest{HoldIds: []string{s.hold}})
	switch {
	case err == nil:
		trace.Tell(trace.Step{Kind: traces.Heard, Token: s.token, Until: told.GetHolds()[0].GetValidFor().AsDuration()})
	case !s.left():
		s.Errorf("seed %d: Check: %v", s.seed, err)
	}
}

// reads says whether others may hold the lock together with the stream.
func (s *simulatedStream) reads() bool { return s.mode == holdv1.Mode_MODE_READ }

// enter notes that a stream says the lock is held: no other may that it excludes.
func (p *play) enter(s *simulatedStream, token int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other := range p.open {
		if !s.reads() || !other.reads() {
			p.Errorf("seed %d: granted while another stream says the lock is held", p.seed)
		}
	}
	if token <= p.token || !s.reads() && token <= p.reader {
		p.Errorf("seed %d: token %d after %d, of readers %d", p.seed, token, p.token, p.reader)
	}
	if p.shared += min(len(p.open), 1); s.reads() {
		p.reader = max(p.reader, token)
	} else {
		p.token = token
	}
	p.open[s] = true
	p.grants++
	time.AfterFunc(s.patience, func() {
		p.mu.Lock()
		delete(p.open, s)
		p.mu.Unlock()
		s.cancel()
	})
}

// ends notes how a stream has ended. One that held and was not left by its caller must say that the lease is lost, or the lock revoked.
func (p *play) ends(s *simulatedStream, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(s.ended)
	open := p.open[s]
	delete(p.open, s)
	if !open || s.left() {
		return
	}
	answer, reason := service.StatusOf(err)
	if reason == "LEASE_LOST" {
		p.losses++
	}
	expected := map[string]codes.Code{"LEASE_LOST": codes.Aborted, "LOCK_REVOKED": codes.Aborted, "SIDECAR_STOPPING": codes.Aborted}
	if code, known := expected[reason]; err == nil || !known || answer.Code() != code {
		p.Errorf("seed %d: a hold ended with %s", p.seed, fmt.Sprint(err))
	}
}

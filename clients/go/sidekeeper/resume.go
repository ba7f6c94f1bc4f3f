package sidekeeper

import (
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// resumePause is what passes between two attempts to come back to a lease. The sidecar is on this machine, and may be there at any moment.
const resumePause = 50 * time.Millisecond

func (m *multiplex) noteResumable(resumable bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resumable = resumable
}

// isResumable says whether a later process of the sidecar may get the lease.
func (m *multiplex) isResumable() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resumable
}

// mayResume says whether the stream has broken without a word, as it does when the sidecar's process ends, of a lease that outlives it. It does
// not while something is to be acknowledged: a client that comes back claims nothing that has ended, and its place would go at once. If no
// client comes back to the lease, the place goes when no caller can be counting on it.
func (m *multiplex) mayResume(err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resumable && isUnanswered(fromStatus(err)) && m.lease.context.Err() == nil && len(m.pending) == 0
}

// resume comes back to the lease over a new stream, and returns the first message on it. Until then the caller's claims count on what they
// were told, and no longer than that: if it runs out, the claim ends, and with it the attempts. broken is why the stream before has ended.
func (m *multiplex) resume(broken error) (*leasev1.MultiplexResponse, error) {
	m.lease.suspended.Store(true)
	m.noteBreak(true)
	m.noteStops()
	for last := time.Duration(0); m.lease.Valid(); {
		if now := m.lease.clock.now(); last == 0 || now >= last+time.Second {
			last = now
			remaining := durationpb.New(m.lease.ValidFor())
			m.tellHolders(func(r *request) { r.suspended(remaining) })
		}
		message, err := m.tryResume()
		if err != nil {
			m.noteStops()
		}
		switch {
		case err == nil:
			m.noteBreak(false)
			m.lease.resume(nil)
			m.tellHolders(func(r *request) { r.resumed() })
			return message, nil
		case errors.Is(fromStatus(err), ErrLeaseNotFound): // the sidecar lives, or knows nothing: then the end of the stream was that of the lease
			return nil, broken
		case !isTransient(cut("lease", fromStatus(err), true)):
			return nil, err
		}
		if rest(m.streaming, resumePause) != nil {
			break
		}
		m.lease.client.connection.ResetConnectBackoff()
	}
	return nil, broken
}

// carriesAnything says whether the lease's clock counts: a request has not ended, or not been acknowledged, or the stream is broken.
func (m *multiplex) carriesAnything() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken || len(m.requests) > 0 || len(m.pending) > 0
}

func (m *multiplex) noteBreak(broken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = broken
}

// noteStops notes whose place may be gone unseen, when a stream has broken over which the sidecar was asked to give it up.
func (m *multiplex) noteStops() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		r.mayBeGone = r.stopAsked
	}
}

// tryResume makes one attempt.
func (m *multiplex) tryResume() (*leasev1.MultiplexResponse, error) {
	m.hangUp()
	m.mu.Lock()
	m.unsent = append(m.unsent[:0:0], &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Resume{Resume: m.claimsLocked()}})
	for id := range m.checks {
		m.unsent = append(m.unsent, checkRequest(id))
	}
	for _, r := range m.requests {
		if r.stopAsked {
			m.unsent = append(m.unsent, stopRequest(r.start.GetRequestId()))
		}
	}
	if m.closing {
		m.unsent = append(m.unsent, nil)
	}
	signal(m.news)
	m.mu.Unlock()
	if err := m.begin(); err != nil {
		return nil, err
	}
	message, err := m.stream.Recv()
	if err == nil && message.GetOpened() == nil {
		err = &Error{Code: codes.Internal, Message: "the sidecar has resumed the lease without saying so"}
	}
	if errors.Is(err, io.EOF) {
		err = &Error{Code: codes.Unavailable, Message: "the sidecar ended the stream without a word"}
	}
	return message, err
}

// claimsLocked are all requests that have not ended. The lock is held.
func (m *multiplex) claimsLocked() *leasev1.Resume {
	resume := &leasev1.Resume{LeaseId: m.lease.id}
	for _, r := range m.requests {
		resume.Claims = append(resume.Claims, &leasev1.Claim{Start: r.start, HoldId: r.holdID, Token: r.token})
	}
	return resume
}

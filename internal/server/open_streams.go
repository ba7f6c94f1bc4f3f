package server

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/budget"
	"github.com/sidekeeper/sidekeeper/internal/caller"
)

// openStreams are those that a policy has let in, by what they asked for, so that a new policy judges them again.
type openStreams struct {
	mu   sync.Mutex
	open map[*authorizedStream]question
}

// enter has a stream judged by each policy that comes, from now on.
func (o *openStreams) enter(stream *authorizedStream, asked question) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[*authorizedStream]question{}
	}
	o.open[stream] = asked
}

func (o *openStreams) leave(stream *authorizedStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, stream)
}

// judge withdraws the permission of each stream that may not be open any more.
func (o *openStreams) judge(authorizer authorizer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for stream := range o.open {
		if err := authorizer.judge(o.open[stream]); err != nil {
			delete(o.open, stream)
			stream.permission.Withdraw(err)
		}
	}
}

// An authorizedStream hands no request to its handler that the authorizer does not let pass, or that is too much for its caller, and has its
// permission withdrawn when a later policy would not let it pass.
type authorizedStream struct {
	grpc.ServerStream

	slot       *budget.Slot
	authorizer authorizer
	method     string
	permission *caller.Permission
	judged     bool // whether a request has come
	last       attempt
}

// Context implements grpc.ServerStream.
func (s *authorizedStream) Context() context.Context {
	return caller.WithPermission(s.ServerStream.Context(), s.permission)
}

// RecvMsg implements grpc.ServerStream.
func (s *authorizedStream) RecvMsg(request any) error {
	if err := s.ServerStream.RecvMsg(request); err != nil {
		return err
	}
	if s.judged && s.method == leasev1.LeaseService_Multiplex_FullMethodName {
		return nil // what comes inside of it is judged by itself
	}
	return s.judge(request)
}

// judge lets a request pass. The stream is among those that a new policy judges before it is judged itself, so that none passes between two
// policies.
func (s *authorizedStream) judge(request any) error {
	s.judged = true
	s.last = attemptOf(s.method, request)
	tellNames(s.ServerStream.Context(), s.method, request)
	from := caller.Of(s.ServerStream.Context())
	asked := questionOf(from, s.method, request)
	if s.authorizer.policy != nil {
		s.authorizer.open.enter(s, asked)
	}
	if err := s.authorizer.judge(asked); err != nil {
		return err
	}
	if caller.GoesOn(s.ServerStream.Context()) {
		return nil
	}
	takes := costOf(s.method, request)
	if caller.IsInner(s.ServerStream.Context()) {
		takes[0] = 0 // it has a session already
	}
	return s.slot.Spend(takes)
}

package sidekeeper

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
)

// A worker runs the handler for an item.
type worker struct {
	stop    context.CancelCauseFunc
	stopped bool
	done    chan struct{} // closed when it has released the lock
}

func (w *worker) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// become stops the handlers whose items are missing, and has those begin that are new.
func (s *sharing) become(working context.Context, items []string) {
	wanted := map[string]bool{}
	for _, item := range items {
		wanted[item] = true
		if former := s.workers[item]; former == nil || former.stopped {
			s.workers[item] = s.begin(working, item, former)
		}
	}
	for item, w := range s.workers {
		if !wanted[item] && !w.stopped {
			w.stopped = true
			w.stop(ErrUnassigned)
		}
		if w.isDone() {
			delete(s.workers, item)
		}
	}
}

func (s *sharing) begin(working context.Context, item string, former *worker) *worker {
	ctx, stop := context.WithCancelCause(working)
	w := &worker{stop: stop, done: make(chan struct{})}
	s.running.Go(func() {
		defer close(w.done)
		defer stop(nil)
		if former != nil {
			<-former.done
		}
		for again := (breather{}); ctx.Err() == nil; {
			lasted, err := s.run(ctx, item)
			isEarly := again == breather{} && errors.Is(err, ErrAlreadyContending) // a former place of this lease is about to go
			if err != nil && !isEarly {
				s.tell(item, err)
			}
			_ = rest(ctx, again.after(lasted)) // then the loop ends
		}
	})
	return w
}

// run takes the item's lock and runs the handler once. Its error is what is new to the caller: not that the lease was lost, or that a handler
// was stopped.
func (s *sharing) run(ctx context.Context, name string) (lasted time.Duration, err error) {
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	about := maps.Clone(s.options.Metadata)
	if about == nil {
		about = map[string]string{}
	}
	about["member"] = s.options.Member
	lock, err := s.acquire(ctx, s.set+"/"+name, LockOptions{
		Lease: s.lease, Owner: s.options.Owner, Metadata: about, AcknowledgeOnRelease: true,
		OnRevocation: func(asked Revocation) {
			if asked.RequestedBy == sidecarItself {
				s.stop(errStopping)
			}
			cancel(ErrAskedToRelease)
		},
	})
	if err != nil {
		if ctx.Err() != nil || s.isOfLease(err) {
			err = nil
		}
		return 0, err
	}
	began := time.Now()
	defer func() {
		if isStopped := held.Err() != nil; isStopped && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(held))) {
			err = nil
		}
		if released := withRelease(ctx, nil, lock.Release); !s.isOfLease(released) {
			err = cmp.Or(err, released)
		}
		lasted = time.Since(began)
	}()
	unlink := lock.onEnd(func() { cancel(context.Cause(lock.Context())) })
	defer unlink()
	return 0, s.handler(lock.Guard(held), &Item{lock, s.set, name})
}

// sidecarItself is who asks for a lock because the sidecar stops, and no later one gets the lock's lease.
const sidecarItself = "sidekeeper"

var errStopping = &Error{Code: codes.Unavailable, Reason: ErrSidecarStopping.Error(), Message: "the sidecar is stopping"}

// acquire is Acquire, which ends the membership if the sidecar stops. If a later sidecar may get the lease, it waits for that one first.
func (s *sharing) acquire(ctx context.Context, name string, options LockOptions) (lock *Lock, err error) {
	err = s.client.throughAbsence(ctx, lockWord+name, nil, s.lease, func(*time.Duration) (heard bool, err error) {
		lock, err = s.client.acquire(ctx, name, options)
		if errors.Is(err, ErrSidecarStopping) && !s.lease.multiplex.isResumable() {
			s.stop(errStopping) // and with it ctx, so that this attempt is the last one
		}
		return lock.heard.Load(), err
	})
	if errors.Is(err, ErrSidecarStopping) && s.lease.Err() == nil {
		s.stop(errStopping)
	}
	return lock, err
}

// isOfLease says whether the membership ends with the same error, or has.
func (s *sharing) isOfLease(err error) bool {
	return errors.Is(err, s.lease.why()) ||
		errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrLeaseClosed) || errors.Is(err, ErrLeaseNotFound) || errors.Is(err, ErrSidecarStopping)
}

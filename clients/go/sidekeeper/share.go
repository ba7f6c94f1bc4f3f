package sidekeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
)

var (
	// ErrUnassigned is the cause with which the context of a handler ends whose item the member does not have any more.
	ErrUnassigned = errors.New("the item is not assigned any more")
	// ErrAskedToRelease is the cause with which the context of a handler ends when another caller wants the lock of the item released.
	ErrAskedToRelease = errors.New("asked to release the item")
)

// DefaultDrainTimeout is for how long Share waits until all items have moved, if its options do not say.
const DefaultDrainTimeout = 30 * time.Second

// ShareOptions say how to share the items of a set. The zero value joins under this host's name with a lease of its own, and takes any number of
// items. OnAssigned must not block: the next items wait for it. OnSuspended and OnResumed are called while the stream is read: they must not
// block either.
type ShareOptions struct {
	Member   string            // one segment of a name; empty, this host's name, which in Kubernetes is the pod's
	Capacity *int              // how many items the member takes: 0 to 2,000; nil, as many as it gets
	Lease    *Lease            // of the same Client, to be a member with and to hold the locks; nil, a lease that lives as long as the membership
	Owner    string            // who the caller is, for people
	Metadata map[string]string // of the member and its locks, which also have `member`

	// Drain has Share wait for its items to move when ctx ends, at most for DrainTimeout, and only then stop the handlers that are left. So each
	// item moves without a pause. Zero DrainTimeout is DefaultDrainTimeout.
	Drain        bool
	DrainTimeout time.Duration

	// OnError is told why a handler has failed, or why its lock was lost or is not granted. The item is empty for the membership. Share goes on.
	// Several goroutines may call it at the same time. Nil, errors go to the logger of the client, or to slog's.
	OnError     func(item string, err error)
	OnAssigned  func(Assignment)
	OnSuspended func(remaining time.Duration) // contact with the ensemble is lost, the membership and the locks are not
	OnResumed   func()
}

// An Assignment says which items a member has.
type Assignment struct {
	Epoch      int64    // larger for each later plan of the set; 0 before the first
	Items      []string // all items of the member, in the order of the set
	Members    int      // of the set
	Total      int      // items of the set
	Unassigned int      // items that the plan gives to no member that is there
}

// An Item is an item of a set, whose lock the caller holds for one run of its handler. Share releases the lock.
type Item struct {
	*Lock

	set, name string
}

// Set is the name of the set.
func (i *Item) Set() string { return i.set }

// Name is the item's name. That of its lock is the set's, a slash and this.
func (i *Item) Name() string { return i.name }

// Share makes the caller a member of a set and runs the handler for each item that the member has, each in a goroutine of its own while it holds
// the item's lock. It does so until ctx ends, and then returns its cause, when all handlers have returned.
//
// The context of a handler ends when the item moves (ErrUnassigned), when its lock is lost (ErrLost), when another caller asks for the lock
// (ErrAskedToRelease), and when Share ends. Share then waits for the handler, however long that takes, and releases the lock. No two handlers of
// one item run at the same time. What a handler writes with its context and this client is guarded by the lock (see Lock.Guard).
//
// A handler that returns while the member has its item begins again after a pause. The pause is a second, and doubles each time up to a minute.
// After a run of a minute it is a second again.
//
// When the membership or its lease is lost, or the sidecar stops (ErrSidecarStopping), Share stops all handlers, waits for them and joins anew,
// after the same pauses. Exception: with a lease that was given, it returns the error. It also returns ErrAssignmentNotFound, ErrInvalidField,
// and that the caller is denied.
func (c *Client) Share(
	ctx context.Context, set string, handler func(ctx context.Context, item *Item) error, options ShareOptions,
) error {
	if options.Member == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("set %s: Member is empty: %w", set, err)
		}
		options.Member = host
	}
	for again := (breather{}); ; {
		s := &sharing{client: c, set: set, handler: handler, options: options, workers: map[string]*worker{}}
		err := s.share(ctx)
		if ctx.Err() != nil || options.Lease != nil || isFinal(err) {
			return err
		}
		s.tell("", err)
		if err := rest(ctx, again.after(s.lasted)); err != nil {
			return err
		}
	}
}

// isFinal says whether another membership would end with the same error.
func isFinal(err error) bool {
	e, is := errors.AsType[*Error](err)
	if !is || errors.Is(err, ErrLeaseNotFound) {
		return !is
	}
	return slices.Contains([]codes.Code{
		codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.Canceled,
	}, e.Code)
}

// A breather is the pause before work begins again that has ended.
type breather struct{ next time.Duration }

func (b *breather) after(lasted time.Duration) time.Duration {
	if b.next = min(2*b.next, time.Minute); b.next == 0 || lasted >= time.Minute {
		b.next = time.Second
	}
	return b.next
}

// A sharing is one membership of a set, with the handlers that run by it.
type sharing struct {
	client  *Client
	set     string
	handler func(ctx context.Context, item *Item) error
	options ShareOptions

	lease   *Lease
	member  *shareMember
	stop    context.CancelCauseFunc // ends the membership
	lasted  time.Duration           // the membership
	workers map[string]*worker
	running sync.WaitGroup
}

// share returns when ctx has ended or the membership has, and no handler runs any more.
func (s *sharing) share(ctx context.Context) (err error) {
	if s.lease = s.options.Lease; s.lease == nil {
		s.lease, err = s.client.OpenLease(ctx, LeaseOptions{Owner: s.options.Owner, Metadata: s.options.Metadata, kept: true})
		if err != nil {
			return err
		}
		defer func() { err = withRelease(ctx, err, s.lease.Close) }()
	}
	if s.member, err = s.join(ctx); err != nil {
		return err
	}
	defer func() { err = withRelease(ctx, err, s.member.Release) }()
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	s.stop = stop
	unlink := s.member.onEnd(func() { stop(context.Cause(s.member.Context())) })
	defer unlink()
	began := time.Now()
	err = s.follow(ctx, working)
	s.lasted = time.Since(began)
	stop(err)
	s.running.Wait()
	return err
}

// withRelease releases something, and adds to err what went wrong, unless err is a loss, of which that tells again.
func withRelease(ctx context.Context, err error, release func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	released := release(ctx)
	if released == nil || errors.Is(err, ErrLost) {
		return err
	}
	return errors.Join(err, released)
}

// follow has the handlers run that the plan wants, until ctx ends and the items have moved if they are to, or the membership has ended.
func (s *sharing) follow(ctx, working context.Context) error {
	stopping := ctx.Done()
	var drained <-chan error
	for {
		select {
		case <-s.member.news:
			assigned := s.member.now()
			s.become(working, assigned.Items)
			call(s.options.OnAssigned, assigned)
		case <-stopping:
			if !s.options.Drain {
				return context.Cause(ctx)
			}
			draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(s.options.DrainTimeout, DefaultDrainTimeout))
			defer cancel() //nolint:gocritic // it begins once
			stopping, drained = nil, s.drain(draining)
		case err := <-drained:
			if err != nil {
				s.tell("", err)
			}
			return context.Cause(ctx)
		case <-working.Done():
			if s.member.Context().Err() == nil {
				return fmt.Errorf("%s: %w", s.member.what, context.Cause(working))
			}
			return cmp.Or(s.member.Err(), error(ended(ErrLeaseClosed.Error(), "the sidecar has ended the membership without a reason")))
		}
		if drained != nil && len(s.member.now().Items) == 0 {
			return context.Cause(ctx)
		}
	}
}

// drain has the next plan give the member nothing. The channel gets nil when ctx ends, which is the time that the items have to move, or at once
// why they will not.
func (s *sharing) drain(ctx context.Context) <-chan error {
	over := make(chan error, 1)
	s.running.Go(func() {
		request := &assignmentv1.SetCapacityRequest{Set: s.set, Member: s.options.Member}
		_, err := assignmentv1.NewAssignmentServiceClient(s.client.connection).SetCapacity(ctx, request)
		if err == nil {
			<-ctx.Done()
		}
		over <- fromStatus(err)
	})
	return over
}

func (s *sharing) tell(item string, err error) {
	if s.options.OnError != nil {
		s.options.OnError(item, err)
		return
	}
	log := cmp.Or(s.client.log, slog.Default())
	log.Error("share: it begins again", slog.String("set", s.set), slog.String("item", item), slog.Any("error", err))
}

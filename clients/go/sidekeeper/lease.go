package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// LeaseOptions describe the lease to open.
type LeaseOptions struct {
	TTL      time.Duration // how long the ensemble keeps it when it hears nothing of it: 1 ms to 24 h; 0, what the sidecar is set to
	Owner    string        // who the caller is, for people
	Metadata map[string]string
	Wait     *time.Duration // how long to wait for a sidecar or an ensemble that is away: 0 tries once; nil, AbsenceTimeout

	kept bool // a loss does not end the stream
}

// A Lease owns what is acquired in its name: when it ends, all of that is given up at once. Its holder must Close it,
// also after it was lost. While nothing stands on it, it is not lost when its validity runs out, as after a pause of the process. Then Valid is
// false until the sidecar answers again, and Err is nil.
type Lease struct {
	*claim
	client    *Client
	multiplex *multiplex
	ttl       time.Duration
}

// OpenLease opens a lease. The end of ctx ends the opening, and not a lease that OpenLease has returned. ErrLeaseLimit,
// ErrEnsembleUnreachable; ErrInvalidField for a TTL that is out of range. While the sidecar or the ensemble is away, OpenLease tries again,
// as Acquire does.
func (c *Client) OpenLease(ctx context.Context, options LeaseOptions) (*Lease, error) {
	var lease *Lease
	err := c.throughAbsence(ctx, "lease", options.Wait, nil, func(wait *time.Duration) (heard bool, err error) {
		options.Wait = wait
		lease, err = c.openLease(ctx, options)
		return lease.heard.Load(), err
	})
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// openLease makes one attempt. It returns the lease also with an error.
func (c *Client) openLease(ctx context.Context, options LeaseOptions) (*Lease, error) {
	claim, streaming := c.newClaim(ctx, "lease")
	l := &Lease{claim: claim, client: c}
	l.multiplex = &multiplex{
		lease: l, news: make(chan struct{}, 1), done: make(chan struct{}),
		requests: map[uint64]*request{}, pending: map[uint64]bool{}, checks: map[uint64]chan time.Duration{},
	}
	claim.carries = l.multiplex.carriesAnything
	stream := heldCall{
		claim: claim, keeper: c.leaseKeeper, after: l.multiplex.end, wait: options.Wait, kept: options.kept,
		open: func() (func() error, error) { return l.multiplex.open(streaming, options) },
	}
	return l, stream.begin(ctx, c)
}

// openOwn opens a lease for one thing alone, what, and takes from the thing's wait what that took.
func (c *Client) openOwn(ctx context.Context, what string, wait **time.Duration, options LeaseOptions) (*Lease, error) {
	began := time.Now()
	options.Wait = *wait
	lease, err := c.openLease(ctx, options)
	if err != nil {
		return lease, fmt.Errorf("%s: %w", what, err)
	}
	if given := *wait; given != nil && *given > 0 { // 0 would be an attempt that does not wait
		*wait = new(max(*given-time.Since(began), time.Millisecond))
	}
	return lease, nil
}

// isHeard says whether the sidecar has said anything of the lease, if there is one.
func (l *Lease) isHeard() bool { return l != nil && l.heard.Load() }

// whenValid makes an attempt at something, what, when the lease to stand on, if there is one, is valid or has ended. While nothing stands on it,
// it may be neither: then the keeper goes on asking.
func (l *Lease) whenValid(ctx context.Context, what string, attempt func() (heard bool, err error)) (heard bool, err error) {
	if l == nil || l.Valid() {
		return attempt()
	}
	waiting, cancel := context.WithTimeoutCause(ctx, answerTime, errSilent)
	defer cancel()
	for !l.Valid() && l.context.Err() == nil {
		if err := rest(waiting, shortestPause); err != nil {
			return false, fmt.Errorf("%s: %w", what, err)
		}
	}
	return attempt()
}

// dropUnused ends a lease that was opened for one thing alone, what, if err says why that has not begun. It returns err or, if the lease
// ended first, what says that another attempt may succeed: nothing was the caller's yet. The sidecar says of the thing that the lease is lost
// before it ends the lease's stream.
func (l *Lease) dropUnused(what string, err error) error {
	if err == nil {
		return nil
	}
	lost, _ := errors.AsType[*Error](l.Err())
	l.end(ErrReleased)
	l.cut()
	<-l.followed
	why, is := errors.AsType[*Error](err)
	if is && why.Code == codes.Aborted && (why == lost || errors.Is(why, ErrLeaseLost)) {
		return fmt.Errorf("%s: %w", what, &Error{
			Code: codes.Unavailable, Reason: ErrEnsembleUnreachable.Error(), Message: "nothing is held: " + why.Message,
		})
	}
	return err
}

// closeUsed closes a lease, if there is one, that was opened for one thing alone. That is gone if released is nil.
func (l *Lease) closeUsed(released error) {
	if l == nil {
		return
	}
	l.end(ErrReleased)
	if released == nil {
		l.multiplex.close()
		return
	}
	l.cut()
	<-l.followed
}

func (o LeaseOptions) request() *leasev1.OpenRequest {
	request := &leasev1.OpenRequest{Owner: o.Owner, Metadata: o.Metadata}
	if o.TTL != 0 {
		request.Ttl = durationpb.New(o.TTL)
	}
	return request
}

func (l *Lease) opened(event *leasev1.Opened) {
	if l.id == "" { // others read them by now
		l.id, l.ttl = event.GetLeaseId(), event.GetTtl().AsDuration()
		l.client.multiplexes.Store(l.id, l.multiplex)
	}
}

// ID names the lease in calls made without this package. It is a secret.
func (l *Lease) ID() string { return l.id }

// TTL is the timeout that the ensemble granted.
func (l *Lease) TTL() time.Duration { return l.ttl }

// Close ends the lease; for the caller, it and everything acquired in its name are over at once. With nil all of it is
// gone from the ensemble. Its error wraps ErrLost if the lease was lost before. Any other is ErrReleaseUnconfirmed. Closing again is harmless.
func (l *Lease) Close(ctx context.Context) error {
	return l.giveUp(ctx, func(ctx context.Context) error {
		_, err := l.client.leases.Close(ctx, &leasev1.CloseRequest{LeaseId: l.id}, grpc.WaitForReady(true))
		return err
	})
}

// why says why the lease has ended.
func (l *Lease) why() error {
	if told, is := errors.AsType[*Error](l.Err()); is {
		return told
	}
	return ended(ErrLeaseClosed.Error(), "the lease is closed")
}

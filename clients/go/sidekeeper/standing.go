package sidekeeper

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// ClaimOptions say how to claim a lock.
type ClaimOptions struct {
	// ID is 32 hexadecimal digits, 128 random bits: a secret, for a caller that knows it owns the claim. A caller that stores it before the call
	// can ask again, or release the claim, whatever became of the call. Empty, Claim makes one.
	ID         string
	Mode       Mode
	ReserveFor time.Duration  // required: how long the claim stands unless it is extended, 1 minute to 30 days
	Reason     string         // required: why, for people
	Wait       *time.Duration // how long to wait for the grant, and for a sidecar that is away: 0 tries once, nil waits for ever
	Owner      string         // who holds the lock, for people
	Metadata   map[string]string
}

// A Claim holds a lock without a process. It outlives its Client: only Release, its time or an operator ends it.
type Claim struct {
	client   *Client
	id, lock string

	mu    sync.Mutex
	token int64
	until time.Time
}

// String leaves out the id, which is a secret.
func (c *Claim) String() string { return "claim of " + c.lock }

// GoString is String.
func (c *Claim) GoString() string { return c.String() }

// Claim waits for its turn and holds the lock without a process. With an ID that was used before, it answers with the same claim. It repeats the
// call while the sidecar or the ensemble is away. If ctx ends first, or there is no answer, it releases a claim whose ID it has made, as well as
// can be. ErrLockHeld, ErrWaitTimeout, ErrClaimEnded, ErrClaimLimit.
func (c *Client) Claim(ctx context.Context, name string, options ClaimOptions) (*Claim, error) {
	claim := &Claim{client: c, id: options.ID, lock: name}
	if options.ID == "" {
		bits := make([]byte, 16)
		_, _ = rand.Read(bits) // never fails: see its documentation
		claim.id = hex.EncodeToString(bits)
	}
	reply, err := c.claimed(ctx, options.Wait, &lockv1.ClaimRequest{
		Name: name, ClaimId: claim.id, Mode: holdv1.Mode(options.Mode), ReserveFor: durationpb.New(options.ReserveFor), Reason: options.Reason,
		WaitTimeout: optionalDuration(options.Wait), Owner: options.Owner, Metadata: options.Metadata,
	})
	if err != nil {
		if options.ID == "" && mayStand(err) {
			claim.withdraw(ctx)
		}
		return nil, fmt.Errorf("claim of lock %s: %w", name, err)
	}
	claim.token, claim.until = reply.GetFencingToken(), reply.GetUntil().AsTime()
	return claim, nil
}

// ClaimByID is the claim with this id, to extend, check or release it. It makes no call. Its Ticket is of no use, since its lock is not known.
func (c *Client) ClaimByID(id string) *Claim { return &Claim{client: c, id: id} }

func (c *Client) claimed(ctx context.Context, wait *time.Duration, request *lockv1.ClaimRequest) (*lockv1.ClaimResponse, error) {
	until, err := waitedUntil(wait)
	if err != nil {
		return nil, err
	}
	var again pause
	for {
		reply, err := c.locks.Claim(ctx, request)
		err = fromStatus(err)
		if err == nil || c.noRetries || !mayAnswer(err) {
			return reply, err
		}
		c.tellAbsence(err)
		pausing := again.grow()
		if wait != nil && time.Until(until) <= pausing || rest(ctx, pausing) != nil {
			return nil, err
		}
		if wait != nil {
			request.WaitTimeout = durationpb.New(max(time.Until(until), time.Millisecond)) // 0 would be an attempt that does not wait
		}
	}
}

func mayAnswer(err error) bool { return isTransient(err) || errors.Is(err, ErrOutcomeUnknown) }

// mayStand says whether a claim may have been made by a call that failed with err: the sidecar has not refused it.
func mayStand(err error) bool {
	e, is := errors.AsType[*Error](err)
	return mayAnswer(err) || is && e.Reason == ""
}

func (c *Claim) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acknowledgeTime)
	defer cancel()
	_, _ = c.client.locks.Release(ctx, &lockv1.ReleaseRequest{ClaimId: c.id}) // it is told of what came before
}

// ID names the claim. It is a secret: a caller that knows it owns the claim.
func (c *Claim) ID() string { return c.id }

// FencingToken orders the grants of this lock, as Lock.FencingToken does. Of a claim by its ID, it is 0 until Check has asked.
func (c *Claim) FencingToken() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// Until is when the claim ends, by the ensemble's clock. Of a claim by its ID, it is zero until Check or Extend has asked.
func (c *Claim) Until() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until
}

// Ticket is what others guard with what they write for the claim.
func (c *Claim) Ticket() Ticket { return Ticket{c.lock, c.FencingToken()} }

func (c *Claim) know(token int64, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token, c.until = token, until
}

// Extend has the claim end no earlier than so long from now, 1 minute to 30 days; see Until. ErrClaimEnded, ErrClaimNotFound.
func (c *Claim) Extend(ctx context.Context, reserveFor time.Duration) error {
	var reply *lockv1.ExtendResponse
	err := c.insist(ctx, func(ctx context.Context) (err error) {
		reply, err = c.client.locks.Extend(ctx, &lockv1.ExtendRequest{ClaimId: c.id, ReserveFor: durationpb.New(reserveFor)})
		return err
	})
	if err != nil {
		return err
	}
	c.know(c.FencingToken(), reply.GetUntil().AsTime())
	return nil
}

// Check says for how long the claim counts from now, whatever operators do: at most 58 seconds, and 0 while it waits. ErrClaimEnded,
// ErrClaimNotFound.
func (c *Claim) Check(ctx context.Context) (validFor time.Duration, err error) {
	asked := c.client.clock.now()
	var reply *lockv1.CheckResponse
	err = c.insist(ctx, func(ctx context.Context) (err error) {
		reply, err = c.client.locks.Check(ctx, &lockv1.CheckRequest{ClaimIds: []string{c.id}})
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, of := range reply.GetClaims() { // one
		if of.GetReason() != "" {
			return 0, ended(of.GetReason(), "the sidecar says so")
		}
		if of.GetUntil() != nil {
			c.know(of.GetFencingToken(), of.GetUntil().AsTime())
		}
		validFor = of.GetValidFor().AsDuration()
	}
	return max(asked+validFor-c.client.clock.coarseness()-c.client.clock.now(), 0), nil
}

// Release ends the claim. Releasing it again is nil for a day. ErrClaimEnded if it has ended otherwise, ErrClaimNotFound.
func (c *Claim) Release(ctx context.Context) error {
	return c.insist(ctx, func(ctx context.Context) error {
		_, err := c.client.locks.Release(ctx, &lockv1.ReleaseRequest{ClaimId: c.id})
		return err
	})
}

// insist makes a call until it is answered, ctx ends or, without a deadline, CallTimeout is over.
func (c *Claim) insist(ctx context.Context, call func(context.Context) error) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, CallTimeout)
		defer cancel()
	}
	var again pause
	for {
		err := fromStatus(call(ctx))
		if err == nil || c.client.noRetries || !mayAnswer(err) || again.wait(ctx) != nil {
			return err
		}
	}
}

package sidekeeper

import (
	"context"
	"iter"
	"time"

	"google.golang.org/grpc"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
)

// A SemaphoreView is who holds a semaphore's permits and who waits for some.
type SemaphoreView struct {
	Name           string
	Limit          int                // how many permits there are
	Held           int                // how many of them are held; more than Limit after it has shrunk
	Holders        []*PermitContender // in the order of their grants
	Waiters        []*PermitContender // in the order of their turn
	WaitersOmitted int                // how many waiters were left out because there are too many for one message
	Quarantines    []*Quarantine      // numbers that no permit bears and that rest, in order
	Stale          bool               // from WatchSemaphore: the ensemble is out of contact, so that the view may be out of date
}

// A Quarantine is a number that was lost, and that no caller gets for a while.
type Quarantine struct {
	Number int
	Until  time.Time // when it ends; zero if it begins only when the next caller wants a number
}

// A PermitContender holds permits or waits for some.
type PermitContender struct {
	Permits             int               // that it holds; 0 if it waits
	Number              *int              // that its permit bears; nil of one without a number, and while it waits
	Identity            string            // as the sidecar that made it verified it; empty where callers are not told apart
	Owner               string            // as given to AcquirePermits; of one that is foreign, what it wrote about itself, if that is text
	Metadata            map[string]string // as given to AcquirePermits
	Token               int64             // of its permits; 0 if it waits
	Age                 time.Duration     // how long it has held them, or waits, by the ensemble's clock
	Foreign             bool              // a client of the ensemble that is not Sidekeeper's
	RevocationRequested bool              // it has been asked to let go
}

// A SemaphoreEntry is one semaphore in a list.
type SemaphoreEntry struct {
	Name  string
	Limit int
}

func semaphoreViewFrom(wire *semaphorev1.View) *SemaphoreView {
	return &SemaphoreView{
		Name: wire.GetName(), Limit: int(wire.GetLimit()), Held: int(wire.GetHeld()), Holders: each(wire.GetHolders(), permitContenderFrom),
		Waiters: each(wire.GetWaiters(), permitContenderFrom), WaitersOmitted: int(wire.GetWaitersOmitted()),
		Quarantines: each(wire.GetQuarantines(), quarantineFrom),
	}
}

func quarantineFrom(wire *semaphorev1.Quarantine) *Quarantine {
	from := &Quarantine{Number: int(wire.GetNumber())}
	if wire.GetUntil() != nil {
		from.Until = wire.GetUntil().AsTime()
	}
	return from
}

func permitContenderFrom(wire *holdv1.Contender) *PermitContender {
	from := &PermitContender{
		Permits: int(wire.GetPermits()), Identity: wire.GetIdentity(), Owner: wire.GetOwner(), Metadata: wire.GetMetadata(),
		Token: wire.GetToken(), Age: wire.GetAge().AsDuration(), Foreign: wire.GetForeign(),
		RevocationRequested: wire.GetRevocationRequested(),
	}
	if wire.Number != nil {
		number := int(wire.GetNumber())
		from.Number = &number
	}
	return from
}

func (c *Client) semaphores() semaphorev1.SemaphoreServiceClient {
	return semaphorev1.NewSemaphoreServiceClient(c.connection)
}

// CreateSemaphore makes a semaphore with so many permits, 1 to 10,000. Creating it again is harmless. ErrSemaphoreExists if it is there with
// another limit.
func (c *Client) CreateSemaphore(ctx context.Context, name string, limit int) error {
	_, err := c.semaphores().Create(ctx, &semaphorev1.CreateRequest{Name: name, Limit: bounded32(limit)})
	return fromStatus(err)
}

// bounded32 is a number that the sidecar checks, and refuses as much as what it stands for.
func bounded32(number int) int32 { return int32(max(-1, min(number, 1<<31-1))) }

// ResizeOptions say how to take permits back.
type ResizeOptions struct {
	Reason string         // for holders that are asked to release permits
	Grace  *time.Duration // after which their holds are ended by force: for operators; nil, never
}

// ResizeSemaphore sets how many permits there are, and says of how many too many the holders were asked: those with a number beyond it, then
// those that were granted last.
// ErrSemaphoreNotFound.
func (c *Client) ResizeSemaphore(ctx context.Context, name string, limit int, options ResizeOptions) (asked int, err error) {
	reply, err := c.semaphores().Resize(ctx, &semaphorev1.ResizeRequest{
		Name: name, Limit: bounded32(limit), Reason: options.Reason, Grace: optionalDuration(options.Grace),
	})
	return int(reply.GetAsked()), fromStatus(err)
}

// GetSemaphore shows the limit, who holds permits and who waits for some. ErrSemaphoreNotFound.
func (c *Client) GetSemaphore(ctx context.Context, name string) (*SemaphoreView, error) {
	reply, err := c.semaphores().Get(ctx, &semaphorev1.GetRequest{Name: name})
	if err != nil {
		return nil, fromStatus(err)
	}
	return semaphoreViewFrom(reply.GetView()), nil
}

// WatchSemaphore shows the same as GetSemaphore, at once and whenever it has changed. It ends with an error, also when ctx ends or the sidecar
// is away: what it has shown may then be out of date.
func (c *Client) WatchSemaphore(ctx context.Context, name string) iter.Seq2[*SemaphoreView, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[semaphorev1.WatchResponse], error) {
		return c.semaphores().Watch(ctx, &semaphorev1.WatchRequest{Name: name, Keepalive: keepaliveEvery})
	}
	from := func(wire *semaphorev1.WatchResponse) (*SemaphoreView, bool) {
		view := semaphoreViewFrom(wire.GetView())
		view.Stale = wire.GetStale()
		return view, true
	}
	return messages(ctx, c.clock, open, from, unheard)
}

// ListSemaphores names the semaphores, in the order of names; all, or those below a prefix of whole segments. An error ends it.
func (c *Client) ListSemaphores(ctx context.Context, prefix string) iter.Seq2[*SemaphoreEntry, error] {
	entry := func(wire *semaphorev1.Semaphore) *SemaphoreEntry {
		return &SemaphoreEntry{wire.GetName(), int(wire.GetLimit())}
	}
	return pages(entry, func(token string) ([]*semaphorev1.Semaphore, string, error) {
		reply, err := c.semaphores().List(ctx, &semaphorev1.ListRequest{Prefix: prefix, PageSize: pageSize, PageToken: token})
		return reply.GetSemaphores(), reply.GetNextPageToken(), err
	})
}

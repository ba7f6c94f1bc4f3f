package endtoend

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A contender is one Acquire stream of this process.
type contender struct {
	sidecar *sidecar
	name    string
	events  *record[*lockv1.AcquireResponse]
	cancel  context.CancelFunc
	arrived atomic.Pointer[moment] // when the status came; nil if none did

	gaveUp   moment        // when the caller asked for the release; 0 if it did not
	finished chan struct{} // closed when the stream has ended
	end      string        // then: how
	ended    moment        // and when
}

// A grant is when a lock was granted, and how.
type grant struct {
	at    moment
	token int64
	id    string
}

// arrivals note when the status of a call has come, which its caller may read late: a busy machine runs others first.
type arrivals struct{}

type arrivalKey struct{}

func (arrivals) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (arrivals) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (arrivals) HandleConn(context.Context, stats.ConnStats)                       {}

func (arrivals) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, is := event.(*stats.InTrailer); !is {
		return
	}
	if arrived, wanted := ctx.Value(arrivalKey{}).(*atomic.Pointer[moment]); wanted {
		arrived.Store(new(now()))
	}
}

// acquire asks for a lock. The stream ends with the test at the latest.
func (s *sidecar) acquire(t *testing.T, name string, adjust ...func(*lockv1.AcquireRequest)) *contender {
	t.Helper()
	request := &lockv1.AcquireRequest{Name: name}
	for _, a := range adjust {
		a(request)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &contender{sidecar: s, name: name, cancel: cancel, events: newRecord[*lockv1.AcquireResponse](), finished: make(chan struct{})}
	stream, err := s.locks.Acquire(context.WithValue(ctx, arrivalKey{}, &c.arrived), request)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	go c.follow(stream)
	t.Cleanup(func() {
		cancel()
		<-c.finished
	})
	return c
}

func as(mode holdv1.Mode) func(*lockv1.AcquireRequest) {
	return func(r *lockv1.AcquireRequest) { r.Mode = mode }
}

func waiting(d time.Duration) func(*lockv1.AcquireRequest) {
	return func(r *lockv1.AcquireRequest) { r.WaitTimeout = durationpb.New(d) }
}

func under(owner string) func(*lockv1.AcquireRequest) {
	return func(r *lockv1.AcquireRequest) { r.Owner = owner }
}

func (c *contender) follow(stream grpc.ServerStreamingClient[lockv1.AcquireResponse]) {
	for {
		event, err := stream.Recv()
		if err != nil {
			c.ended, c.end = now(), told(err)
			if arrived := c.arrived.Load(); arrived != nil {
				c.ended = *arrived
			}
			c.events.end()
			close(c.finished)
			return
		}
		c.events.add(event)
	}
}

// granted waits for the grant.
func (c *contender) granted(t *testing.T) grant {
	t.Helper()
	seen := c.events.await(t, "granted", patient, isGranted)
	return grant{seen.at, seen.what.GetGranted().GetFencingToken(), seen.what.GetGranted().GetHoldId()}
}

func isGranted(event *lockv1.AcquireResponse) bool { return event.GetGranted() != nil }

// queued waits until the caller knows that it has to wait, and returns how many are ahead.
func (c *contender) queued(t *testing.T) int {
	t.Helper()
	seen := c.events.await(t, "queued", patient, func(e *lockv1.AcquireResponse) bool { return e.GetQueued() != nil })
	return int(seen.what.GetQueued().GetPosition())
}

// asked waits until the caller is asked to let go.
func (c *contender) asked(t *testing.T) *holdv1.RevocationRequested {
	t.Helper()
	seen := c.events.await(t, "revocation requested", patient, func(e *lockv1.AcquireResponse) bool {
		return e.GetRevocationRequested() != nil
	})
	return seen.what.GetRevocationRequested()
}

// awaitEnd waits for the stream's end, which must be the one given.
func (c *contender) awaitEnd(t *testing.T, want string) moment {
	t.Helper()
	await(t, "the stream's end", patient, c.finished)
	if c.end != want {
		t.Fatalf("the stream ended with %s instead of %s", c.end, want)
	}
	return c.ended
}

func (c *contender) release(t *testing.T) {
	t.Helper()
	id := c.granted(t).id
	c.gaveUp = now()
	_, err := c.sidecar.locks.Release(t.Context(), &lockv1.ReleaseRequest{HoldId: id})
	must(t, err)
}

// pair is a holder and somebody who waits behind it, each on a sidecar.
func pair(t *testing.T, first, second *sidecar, name string) (holder, waiter *contender) {
	t.Helper()
	holder = first.acquire(t, name)
	holder.granted(t)
	waiter = second.acquire(t, name)
	waiter.queued(t)
	return holder, waiter
}

// succeeds waits for the grant behind a holder, and fails unless the holder's stream had ended before with the end given,
// and the fencing token has grown. It returns how long before.
func succeeds(t *testing.T, holder, waiter *contender, end string) (margin time.Duration) {
	t.Helper()
	if margin = handOver(t, holder, waiter); margin < 0 {
		t.Errorf("two holders for %v", -margin)
	}
	if holder.end != end {
		t.Errorf("the holder's stream ended with %s instead of %s", holder.end, end)
	}
	return margin
}

// handOver waits for the end of a holder's stream and for the grant behind it, and returns how long the grant came after
// the end. A caller that gave the lock up counts on it no more from then on: its sidecar has handed the end to the transport
// before the next grant, which may travel faster on a busy machine.
func handOver(t *testing.T, holder, waiter *contender) (margin time.Duration) {
	t.Helper()
	next := waiter.granted(t)
	await(t, "the end of the holder's stream, after another was granted the lock", patient, holder.finished)
	if before := holder.granted(t).token; next.token <= before {
		t.Errorf("fencing token %d after %d", next.token, before)
	}
	if holder.gaveUp != 0 {
		return next.at.since(min(holder.gaveUp, holder.ended))
	}
	return next.at.since(holder.ended)
}

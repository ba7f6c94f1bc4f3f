package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// away is an attempt that fails because the sidecar is away, each at this time.
type away struct {
	begun time.Time
	took  []time.Duration
	waits []time.Duration
}

var errAway = &Error{Code: codes.Unavailable, Message: "connection refused"}

func (a *away) fail(wait *time.Duration) error {
	a.took = append(a.took, time.Since(a.begun))
	if wait != nil {
		a.waits = append(a.waits, *wait)
	}
	return fmt.Errorf("lock orders: %w", errAway)
}

func TestAnAbsentSidecarIsTriedForAsLongAsTheCallerSaid(t *testing.T) {
	for _, c := range []struct {
		wait, last time.Duration // the last attempt is in the last pause
		once       bool
	}{
		{wait: 0, once: true},
		{wait: time.Minute, last: time.Minute},
		{wait: -1, last: AbsenceTimeout},
	} {
		t.Run(c.wait.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a, wait := &away{begun: time.Now()}, &c.wait
				if c.wait < 0 {
					wait = nil
				}
				err := (&Client{}).throughAbsence(t.Context(), "lock orders", wait, nil, func(wait *time.Duration) (bool, error) {
					return false, a.fail(wait)
				})
				if err == nil || err.Error() != "lock orders: Unavailable: connection refused" {
					t.Error(err)
				}
				if total := time.Since(a.begun); total != c.last {
					t.Errorf("given up after %v, not after %v", total, c.last)
				}
				if once := len(a.took) == 1; once != c.once || c.last-a.took[len(a.took)-1] > longestPause {
					t.Errorf("tried at %v", a.took)
				}
				for i, left := range a.waits {
					if left != max(c.wait-a.took[i], 0) {
						t.Errorf("attempt %d, at %v, waits for %v", i, a.took[i], left)
					}
				}
			})
		})
	}
}

func TestTheTimeForAnAbsenceBeginsAnewWhenTheSidecarWasHeard(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := &away{begun: time.Now()}
		_ = (&Client{}).throughAbsence(t.Context(), "lock orders", nil, nil, func(wait *time.Duration) (bool, error) {
			if heard := len(a.took) == 0; heard { // and then it waited for an hour
				time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
				return true, a.fail(wait)
			}
			return false, a.fail(wait)
		})
		if total := time.Since(a.begun); total != time.Hour+AbsenceTimeout {
			t.Errorf("given up after %v", total)
		}
	})
}

func TestTheEndOfTheContextEndsTheTrying(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		a := &away{begun: time.Now()}
		time.AfterFunc(3*time.Second, func() { cancel(errors.New("no longer needed")) })
		err := (&Client{}).throughAbsence(ctx, "lock orders", nil, nil, func(wait *time.Duration) (bool, error) { return false, a.fail(wait) })
		if err == nil || err.Error() != "lock orders: no longer needed" || time.Since(a.begun) != 3*time.Second {
			t.Error(err, time.Since(a.begun))
		}
	})
}

// A proxy that cuts a stream over which the sidecar was heard is an absence. The same status of one that was never heard is the caller's own
// mistake, such as text that is no UTF-8.
func TestAStreamThatWasCutIsAskedForAgainIfItWasHeard(t *testing.T) {
	for heard, calls := range map[bool]int{true: 2, false: 1} {
		inBubble(t, func(t *testing.T) {
			var told []string
			client := &Client{absent: func(err error) { told = append(told, err.Error()) }}
			made := 0
			err := client.throughAbsence(t.Context(), "lock orders", nil, nil, func(*time.Duration) (bool, error) {
				if made++; made == 2 {
					return true, nil
				}
				return heard, fmt.Errorf("lock orders: %w", &Error{Code: codes.Internal, Message: "RST_STREAM"})
			})
			if made != calls || (err == nil) != heard {
				t.Errorf("heard: %v, %d attempts, then %v", heard, made, err)
			}
			if heard && fmt.Sprint(told) != "[lock orders: Unavailable: the stream was cut on the way: RST_STREAM]" {
				t.Error(told)
			}
		})
	}
}

// told is a stream of these messages.
type told struct {
	grpc.ServerStreamingClient[lockv1.AcquireResponse]
	messages []*lockv1.AcquireResponse
}

func (t *told) Recv() (*lockv1.AcquireResponse, error) {
	if len(t.messages) == 0 {
		return nil, errAway
	}
	first := t.messages[0]
	t.messages = t.messages[1:]
	return first, nil
}

// A sidecar that keeps a stream alive and has no ensemble is away: what is heard is what happens.
func TestAKeepaliveIsNotHeard(t *testing.T) {
	kept := &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Keepalive{Keepalive: &holdv1.Keepalive{}}}
	for _, c := range []struct {
		messages []*lockv1.AcquireResponse
		want     string
	}{
		{[]*lockv1.AcquireResponse{kept, kept}, "[] Unavailable: connection refused"},
		{[]*lockv1.AcquireResponse{kept, {}, kept}, "[event] <nil>"},
	} {
		var heard []string
		receive, err := single(func() (grpc.ServerStreamingClient[lockv1.AcquireResponse], error) {
			return &told{messages: c.messages}, nil
		}, func(*lockv1.AcquireResponse) { heard = append(heard, "event") })()
		if err == nil {
			err = receive()
		}
		if got := fmt.Sprint(heard, " ", err); got != c.want {
			t.Errorf("%s, not %s", got, c.want)
		}
	}
}

func TestOnlyAnAbsenceIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		lost, cancel := context.WithCancel(t.Context())
		cancel()
		for _, c := range []struct {
			client *Client
			lease  *Lease
			err    error
		}{
			{&Client{noRetries: true}, nil, errAway},
			{&Client{}, &Lease{claim: &claim{context: lost}}, errAway},
			{&Client{}, nil, &Error{Code: codes.FailedPrecondition, Reason: "LOCK_HELD"}},
			{&Client{}, nil, &Error{Code: codes.Canceled, Message: "the client connection is closing"}},
		} {
			calls := 0
			err := c.client.throughAbsence(t.Context(), "lock orders", nil, c.lease, func(*time.Duration) (bool, error) {
				calls++
				return false, c.err
			})
			if calls != 1 || !errors.Is(err, c.err) {
				t.Error(calls, err)
			}
		}
	})
}

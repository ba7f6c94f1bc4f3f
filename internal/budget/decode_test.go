package budget

import (
	"context"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/fields"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// A large request takes memory while it is decoded.
func TestLargeRequestsAreDecodedFewAtATime(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		claims := func(number int) []byte {
			wire, err := proto.Marshal(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Resume{
				Resume: &leasev1.Resume{Claims: make([]*leasev1.Claim, number)},
			}})
			must(t, err)
			return wire
		}
		b := budgetOf(0, zap.NewNop())
		read := func(ctx context.Context, wire []byte) error {
			by := &arrival{of: b.newAccount("uid:1"), ctx: ctx}
			return b.decode(by, wire, new(leasev1.MultiplexRequest), fields.MostOf(new(leasev1.MultiplexRequest).ProtoReflect().Descriptor()), false)
		}
		large := claims(fields.Most + 1)
		same(t, "one", read(t.Context(), large), nil)
		must(t, b.allDecoding.places.Acquire(t.Context(), mostDecoded))
		waits := make(chan error, 1)
		go func() { waits <- read(t.Context(), large) }()
		synctest.Wait()
		same(t, "ended", len(waits), 0)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		same(t, "of a caller that has gone", read(gone, large), context.Canceled)
		same(t, "a small one beside them", read(t.Context(), claims(10)), nil)
		b.allDecoding.places.Release(mostDecoded)
		same(t, "in its turn", <-waits, nil)
		most := fields.MostOf(new(leasev1.MultiplexRequest).ProtoReflect().Descriptor())
		same(t, "with too many", told(read(t.Context(), claims(most))), "ResourceExhausted QUOTA_EXCEEDED")
	})
}

// A further message of a lease with too many fields loses what it starts, and not its number.
func TestAFurtherMessageWithTooManyFieldsIsTheStartOfNothing(t *testing.T) {
	t.Parallel()
	all := &lockv1.AcquireAllRequest{Locks: make([]*lockv1.WantedLock, fields.Most)}
	start := &leasev1.Start{RequestId: 7, Request: &leasev1.Start_AcquireAll{AcquireAll: all}}
	wire, err := proto.Marshal(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}})
	must(t, err)
	got := new(leasev1.MultiplexRequest)
	b := budgetOf(0, zap.NewNop())
	must(t, b.decode(&arrival{ctx: t.Context()}, wire, got, fields.Most, true))
	same(t, "started", got.GetStart().GetRequestId(), 7)
	same(t, "what", got.GetStart().GetRequest(), nil)
}

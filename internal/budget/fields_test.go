package budget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// fieldsOfMessage counts the fields of a decoded message, each element and entry as one, and those of the messages in it.
func fieldsOfMessage(message protoreflect.Message) (fields int) {
	count := func(of protoreflect.FieldDescriptor, value protoreflect.Value) {
		fields++
		if of.Message() != nil {
			fields += fieldsOfMessage(value.Message())
		}
	}
	message.Range(func(of protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case of.IsList():
			for i := range value.List().Len() {
				count(of, value.List().Get(i))
			}
		case of.IsMap():
			fields += value.Map().Len()
		default:
			count(of, value)
		}
		return true
	})
	return fields
}

// What passes has no more fields when it is decoded than it may have, over gRPC and in JSON.
func FuzzARequestThatPassesHasFewFields(f *testing.F) {
	few := &configv1.CommitRequest{Guards: []*holdv1.Guard{{}, {}}, Operations: []*configv1.Operation{
		{Operation: &configv1.Operation_Put{Put: &configv1.PutRequest{Key: `{",[`}}},
		{Operation: &configv1.Operation_Check{Check: &configv1.CheckRequest{Key: `"`}}},
	}}
	wire, err := proto.Marshal(few)
	if err != nil {
		f.Fatal(err)
	}
	text, err := protojson.Marshal(few)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wire)
	f.Add(text)
	f.Add([]byte(`{"guards":[{},{},{}],"operations":[{"check":{"key":"\\\"{,"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		most := fieldsOfMessage(few.ProtoReflect())
		decoded := new(configv1.CommitRequest)
		if left := most; proto.Unmarshal(data, decoded) == nil {
			err := countFields(data, decoded.ProtoReflect().Descriptor(), &left, 0)
			if got := fieldsOfMessage(decoded.ProtoReflect()); got > most && !errors.Is(err, errManyFields) {
				t.Errorf("%d fields pass on the wire, more than %d: %q", got, most, data)
			}
		}
		if protojson.Unmarshal(data, decoded) == nil {
			if got := fieldsOfMessage(decoded.ProtoReflect()); got > most && countJSON(data, most) >= 0 {
				t.Errorf("%d fields pass in JSON, more than %d: %q", got, most, data)
			}
		}
	})
}

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
			return b.decode(by, wire, new(leasev1.MultiplexRequest), mostResumed, false)
		}
		large := claims(MostFields + 1)
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
		same(t, "with too many", told(read(t.Context(), claims(mostResumed))), "ResourceExhausted QUOTA_EXCEEDED")
	})
}

// A further message of a lease with too many fields loses what it starts, and not its number.
func TestAFurtherMessageWithTooManyFieldsIsTheStartOfNothing(t *testing.T) {
	t.Parallel()
	all := &lockv1.AcquireAllRequest{Locks: make([]*lockv1.WantedLock, MostFields)}
	start := &leasev1.Start{RequestId: 7, Request: &leasev1.Start_AcquireAll{AcquireAll: all}}
	wire, err := proto.Marshal(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}})
	must(t, err)
	got := new(leasev1.MultiplexRequest)
	b := budgetOf(0, zap.NewNop())
	must(t, b.decode(&arrival{ctx: t.Context()}, wire, got, MostFields, true))
	same(t, "started", got.GetStart().GetRequestId(), 7)
	same(t, "what", got.GetStart().GetRequest(), nil)
}

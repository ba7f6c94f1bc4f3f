package budget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// fieldsIn counts the fields of a decoded message, each element and entry as one, and those of the messages in it.
func fieldsIn(message protoreflect.Message) (fields int) {
	count := func(of protoreflect.FieldDescriptor, value protoreflect.Value) {
		fields++
		if of.Message() != nil {
			fields += fieldsIn(value.Message())
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
		most := fieldsIn(few.ProtoReflect())
		decoded := new(configv1.CommitRequest)
		if left := most; proto.Unmarshal(data, decoded) == nil {
			err := count(data, decoded.ProtoReflect().Descriptor(), &left, 0)
			if got := fieldsIn(decoded.ProtoReflect()); got > most && !errors.Is(err, errManyFields) {
				t.Errorf("%d fields pass on the wire, more than %d: %q", got, most, data)
			}
		}
		if protojson.Unmarshal(data, decoded) == nil {
			if got := fieldsIn(decoded.ProtoReflect()); got > most && countJSON(data, most) >= 0 {
				t.Errorf("%d fields pass in JSON, more than %d: %q", got, most, data)
			}
		}
	})
}

// A large resumption takes memory until its handler is done with it, of which one caller has so much at once.
func TestACallersLargeResumptionsWaitForOneAnother(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		slot := &Slot{quota: newCallerQuota()}
		large := make([]*leasev1.Claim, mostResumed-1000)
		wire, err := proto.Marshal(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Resume{Resume: &leasev1.Resume{Claims: large}}})
		must(t, err)
		reception := Reception{Told: func(_ context.Context, err error) *status.Status {
			answer, _ := service.StatusOf(err)
			return answer
		}}
		read := func(ctx context.Context, bytes []byte, most int) (taken int64, err error) {
			ctx = peer.NewContext(ctx, &peer.Peer{AuthInfo: caller.Caller{Identity: "uid:1", Slot: slot}})
			err = reception.decode(ctx, new(leasev1.MultiplexRequest), func(into any) error {
				return NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(bytes)}, into)
			}, most, &taken)
			return taken, err
		}
		first, err := read(t.Context(), wire, mostResumed)
		same(t, "one", err, nil)
		_, err = read(t.Context(), wire, mostResumed)
		same(t, "another", err, nil)
		third := make(chan error, 1)
		go func() {
			_, err := read(t.Context(), wire, mostResumed)
			third <- err
		}()
		synctest.Wait()
		same(t, "waits", len(third), 0)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = read(gone, wire, mostResumed)
		same(t, "of one who has gone", told(err), "Canceled")
		_, err = read(t.Context(), wire[:0], mostResumed)
		same(t, "a small one beside them", err, nil)
		slot.quota.large.Release(first)
		same(t, "in its turn", <-third, nil)
		_, err = read(t.Context(), wire, MostFields)
		same(t, "with too many", told(err), "ResourceExhausted QUOTA_EXCEEDED")
	})
}

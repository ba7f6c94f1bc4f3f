package fields

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
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
			err := count(data, decoded.ProtoReflect().Descriptor(), &left, 0)
			if got := fieldsOfMessage(decoded.ProtoReflect()); got > most && !errors.Is(err, errMany) {
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

// It looks inside: each request of millions is one call of a handler, without a connection.

package server

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// Whatever bytes are sent to any rpc, they are answered with a status, and nothing is left of them but what was asked for.
func FuzzRequests(f *testing.F) {
	for i, rpc := range prototypes(f) {
		for _, choices := range seeds() {
			request := proto.Clone(rpc)
			(&filler{choices: []byte(choices)}).fill(request.ProtoReflect())
			encoded, err := proto.Marshal(request)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), true, encoded)
		}
		f.Add(uint8(i), false, []byte("\x0a\x01a"))
		f.Add(uint8(i), false, []byte("\x0a\xff\xff\xff\xff\x0f"))
	}
	f.Fuzz(func(t *testing.T, number uint8, operator bool, request []byte) {
		bubble.Test(t, func(t *testing.T) {
			b := populated(t)
			defer b.close()
			to := b.rpcs[int(number)%len(b.rpcs)]
			told := b.call(to, operator, request)
			if proto.Unmarshal(request, to.prototype()) == nil {
				decent(t, to, request, told)
			}
		})
	})
}

// The same for requests that can be read, whatever stands in their fields.
func FuzzFieldsOfRequests(f *testing.F) {
	for i := range prototypes(f) {
		for _, choices := range seeds() {
			f.Add(uint8(i), true, choices)
			f.Add(uint8(i), false, choices)
		}
	}
	f.Add(uint8(4), true, "1") // a lease is opened by its stream's first message, and the same message is refused as the second one
	f.Fuzz(func(t *testing.T, number uint8, operator bool, choices string) {
		bubble.Test(t, func(t *testing.T) {
			b := populated(t)
			defer b.close()
			to := b.rpcs[int(number)%len(b.rpcs)]
			message := to.prototype()
			(&filler{choices: []byte(choices)}).fill(message.ProtoReflect())
			request, err := proto.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			decent(t, to, request, b.call(to, operator, request))
		})
	})
}

// prototypes are the empty requests of all rpcs, in their order.
func prototypes(f *testing.F) (requests []proto.Message) {
	f.Helper()
	b := &switchboard{services: service.New(service.Options{}, &memoryEnsemble{})}
	service.Dev{Services: b.services, Faults: idleFaults{}}.Register(b)
	for _, rpc := range b.rpcs {
		requests = append(requests, rpc.prototype())
	}
	if len(requests) < 30 {
		f.Fatalf("only %d rpcs", len(requests))
	}
	return requests
}

// populated is a sidecar that knows a lock, a sequence, a group and a key, each called `a`.
func populated(t *testing.T) *switchboard {
	t.Helper()
	b := newSwitchboard(t)
	for _, order := range []struct {
		method  string
		request proto.Message
	}{
		{sequencev1.SequenceService_Create_FullMethodName, &sequencev1.CreateRequest{Name: "a"}},
		{membershipv1.MembershipService_Create_FullMethodName, &membershipv1.CreateRequest{Group: "a"}},
		{configv1.ConfigService_Put_FullMethodName, &configv1.PutRequest{Key: "a", Content: &configv1.PutRequest_Text{Text: "v"}}},
	} {
		encoded, err := proto.Marshal(order.request)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(b.rpcs, func(r rpc) bool { return r.method == order.method })
		same(t, order.method, outcome(b.call(b.rpcs[at], true, encoded)), "OK")
	}
	holder := b.ensemble.memory.OpenSession(0)
	foreign := recipes.Lock{Path: "/sidekeeper/locks/a"}
	if _, err := foreign.Join(t.Context(), holder, recipes.Exclusive, recipes.About{Owner: "foreign"}); err != nil {
		t.Fatal(err)
	}
	return b
}

// decent fails the test unless a caller is told what it may be told.
func decent(t *testing.T, to rpc, request []byte, told error) {
	t.Helper()
	switch code := outcomeCode(told); code {
	case codes.Internal, codes.Unknown, codes.Unimplemented, codes.DataLoss, codes.Unauthenticated:
		t.Errorf("%s ends with %v", to.method, told)
	case codes.InvalidArgument:
		if !strings.HasPrefix(outcome(told), "InvalidArgument INVALID_FIELD ") {
			t.Errorf("%s ends with %s, which names no field", to.method, outcome(told))
		}
	}
	if told, is := told.(*answered); is && len(told.status.Message()) > 1<<10 {
		t.Errorf("%s: a message of %d bytes to a request of %d", to.method, len(told.status.Message()), len(request))
	}
}

func outcomeCode(err error) codes.Code {
	if told, is := err.(*answered); is {
		return told.status.Code()
	}
	if err == nil {
		return codes.OK
	}
	return codes.Unknown
}

// fillings make requests of several kinds: with nothing, the first and further values of everything.
var fillings = []string{
	"", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09", strings.Repeat("\x01", 40), strings.Repeat("\x01\x02\x03", 20),
	strings.Repeat("\x01\x05", 20), strings.Repeat("\x01\x01\x07", 20), strings.Repeat("\x01\x0b\x11\x03", 20), strings.Repeat("\xff", 40),
}

// seeds are the fillings, or a few of them with -short: each rpc is called with each.
func seeds() []string {
	if testing.Short() {
		return fillings[3:5]
	}
	return fillings
}

// A filler fills messages: each byte decides something, and when there are no more, all that is left is left out.
type filler struct{ choices []byte }

func (f *filler) choose(among int) int {
	if len(f.choices) == 0 {
		return 0
	}
	choice := int(f.choices[0])
	f.choices = f.choices[1:]
	return choice % among
}

func (f *filler) fill(message protoreflect.Message) {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if f.choose(4) == 0 {
			continue
		}
		switch {
		case field.IsMap():
			entries := message.Mutable(field).Map()
			for range f.choose(3) {
				entries.Set(f.scalar(field.MapKey()).MapKey(), f.scalar(field.MapValue()))
			}
		case field.IsList():
			f.fillList(field, message.Mutable(field).List())
		case field.Message() != nil:
			f.fill(message.Mutable(field).Message())
		default:
			message.Set(field, f.scalar(field))
		}
	}
}

func (f *filler) fillList(field protoreflect.FieldDescriptor, list protoreflect.List) {
	for range []int{0, 1, 2, 3, 101, 1001}[f.choose(6)] {
		if field.Message() == nil {
			list.Append(f.scalar(field))
		} else {
			f.fill(list.AppendMutable().Message())
		}
	}
}

// tokenOf is a page token, as a list gives it.
func tokenOf(last string) string { return base64.RawURLEncoding.EncodeToString([]byte("1 " + last)) }

// largestValue is the longest that a key may have.
const largestValue = 1_000_000

var (
	texts = []string{
		"a", "b", "a/b", "", ".", "..", "/", "a//b", "a/", "zookeeper", "zookeeper/a", "%2F", "a%2Fb", "a\nb", "\x00", "ä", "\u2028",
		strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x/", 99) + "x", strings.Repeat("x/", 100) + "x",
		strings.Repeat("0", 32), strings.Repeat("y", 1024), tokenOf("a"), tokenOf("1"), tokenOf("\xff"), "MSBh",
	}
	numbers = []int64{1, 0, 2, -1, 10, 100, 1000, 1001, 10001, 1 << 20, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
)

func (f *filler) scalar(field protoreflect.FieldDescriptor) protoreflect.Value {
	number := func() int64 { return numbers[f.choose(len(numbers))] }
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(f.choose(2) == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(f.choose(6) - 1))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(number()))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(number()))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(number())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(texts[f.choose(len(texts))])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(make([]byte, []int{0, 1, largestValue, largestValue + 1}[f.choose(4)]))
	}
	panic("no value for a field of kind " + field.Kind().String())
}

package server_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A request with more fields than its method may have is refused before anything is made of them, whichever way it comes.
func TestARequestWithManyFieldsIsRefused(t *testing.T) {
	t.Parallel()
	p := newProbe(t, onLoopback(t))
	many := make([]string, 5000)
	locks := lockv1.NewLockServiceClient(p.dial(p.address()))
	_, err := locks.Check(within(t), &lockv1.CheckRequest{HoldIds: many})
	same(t, "gRPC", outcome(err), "ResourceExhausted QUOTA_EXCEEDED")
	_, err = locks.Check(within(t), &lockv1.CheckRequest{HoldIds: many[:1000]})
	same(t, "gRPC, a thousand", strings.Contains(outcome(err), "QUOTA_EXCEEDED"), false)
	metadata := make(map[string]string, 2000)
	for i := range many[:2000] {
		metadata[fmt.Sprint(i)] = ""
	}
	stream, err := locks.Acquire(within(t), &lockv1.AcquireRequest{Metadata: metadata})
	must(t, err)
	_, err = stream.Recv()
	same(t, "a stream over gRPC", outcome(err), "ResourceExhausted QUOTA_EXCEEDED")

	s := newPolicyScene(t, `rules: [{identities: ["*"], methods: ["sidekeeper.lock.v1.LockService/*", "sidekeeper.lease.v1.LeaseService/*"]}]`)
	lease, err := leasev1.NewLeaseServiceClient(s.callers["socket:app"]).Multiplex(within(t))
	must(t, err)
	must(t, lease.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}}))
	_, err = lease.Recv()
	must(t, err)
	started := &leasev1.Start{RequestId: 1, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Metadata: metadata}}}
	must(t, lease.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: started}}))
	refused, err := lease.Recv()
	must(t, err) // the lease goes on, and all that stands on it
	ended := refused.GetEnded()
	same(t, "a further message of a lease", fmt.Sprint(ended.GetRequestId(), codes.Code(ended.GetCode())), "1 Unimplemented")

	enveloped := func(message string) string {
		return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))) + message
	}
	onTheWire, err := proto.Marshal(&lockv1.CheckRequest{HoldIds: many})
	must(t, err)
	elements := strings.Repeat(`"",`, 5000) + `""]}`
	const check, tooLarge = lockv1.LockService_Check_FullMethodName, http.StatusRequestEntityTooLarge
	for _, c := range []struct {
		name, method, kind, body string
		want                     int
	}{
		{"JSON", check, "application/json", `{"holdIds":[` + elements, tooLarge},
		{"JSON of another spelling", check, "Application/JSON; Charset=utf-8", `{"holdIds":[` + elements, tooLarge},
		{"Connect's protobuf", check, "application/proto", string(onTheWire), tooLarge},
		{"gRPC-Web", check, "application/grpc-web+proto", enveloped(string(onTheWire)), tooLarge},
		{
			"a stream in JSON", fencingv1.FencingService_Watch_FullMethodName, "application/connect+json",
			enveloped(`{"locks":[` + elements), tooLarge,
		},
		{
			"a text with commas", lockv1.LockService_Get_FullMethodName, "application/json",
			`{"name":"` + strings.Repeat(",{", 5000) + `"}`, http.StatusOK,
		},
	} {
		code, answer := p.post(c.method, c.body, "Content-Type: "+c.kind)
		if code != c.want || code != http.StatusOK && !strings.Contains(answer, "more than 4096 fields") {
			t.Errorf("%s: %d %.200s; want %d", c.name, code, answer, c.want)
		}
	}
}

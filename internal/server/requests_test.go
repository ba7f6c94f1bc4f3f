package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

// What docs/limits.md says of one caller.
const (
	mostUnread        = 1024
	streamConnections = 4
)

// newTwo starts a sidecar with two callers, and returns a connection of each.
func newTwo(t *testing.T, change ...func(*server.Options)) (p *probe, one, other *grpc.ClientConn) {
	t.Helper()
	p = newProbe(t, append(change, func(o *server.Options) {
		folder := strings.TrimSuffix(o.Listen[0], "/callers")
		o.Listen = []string{folder + "/one?identity=one", folder + "/other?identity=other"}
	})...)
	addresses := p.server.Addresses()
	one, other = p.dial(addresses[0]), p.dial(addresses[1])
	return p, one, other
}

func get(t *testing.T, connection *grpc.ClientConn, options ...grpc.CallOption) string {
	t.Helper()
	_, err := lockv1.NewLockServiceClient(connection).Get(within(t), &lockv1.GetRequest{}, options...)
	return outcome(err)
}

// incomplete begins a call whose request never comes, and returns what will come of it.
func incomplete(t *testing.T, connection *grpc.ClientConn, method string) <-chan string {
	t.Helper()
	stream, err := connection.NewStream(within(t), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	must(t, err)
	ended := make(chan string, 1)
	go func() { ended <- outcome(stream.RecvMsg(&lockv1.GetResponse{})) }()
	return ended
}

func TestACompressedRequestIsRefused(t *testing.T) {
	t.Parallel()
	_, one, _ := newTwo(t)
	same(t, "a call", get(t, one, grpc.UseCompressor(gzip.Name)), "Unimplemented")
	stream, err := lockv1.NewLockServiceClient(one).Acquire(within(t), &lockv1.AcquireRequest{}, grpc.UseCompressor(gzip.Name))
	must(t, err)
	_, err = stream.Recv()
	same(t, "a stream", outcome(err), "Unimplemented")
	same(t, "another one", get(t, one), "OK")
}

func TestARequestThatDoesNotComeInTimeEndsAndTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	_, one, other := newTwo(t, func(o *server.Options) { server.CompleteWithin(o, time.Second) })
	var ends []<-chan string
	for i := range 128 {
		method := []string{lockv1.LockService_Get_FullMethodName, lockv1.LockService_Acquire_FullMethodName}[i%2]
		ends = append(ends, incomplete(t, one, method))
	}
	same(t, "another caller", get(t, other), "OK")
	for i, end := range ends {
		same(t, fmt.Sprint(i), receive(t, end), "ResourceExhausted QUOTA_EXCEEDED")
	}
	same(t, "the caller, later", get(t, one), "OK")
}

func TestACallerHasOnlySoManyIncompleteRequests(t *testing.T) {
	t.Parallel()
	p, one, other := newTwo(t, func(o *server.Options) { server.CompleteWithin(o, time.Hour) })
	ended := make(chan string, mostUnread+1)
	for range mostUnread + 1 {
		end := incomplete(t, one, lockv1.LockService_Get_FullMethodName)
		go func() { ended <- <-end }()
	}
	same(t, "one too many", receive(t, ended), "ResourceExhausted QUOTA_EXCEEDED")
	same(t, "a whole one of the same caller", get(t, p.dial(p.server.Addresses()[0])), "ResourceExhausted QUOTA_EXCEEDED")
	same(t, "one of another caller", get(t, other), "OK")
}

func TestACallerHasOnlySoManyStreamsOverAllItsConnections(t *testing.T) {
	t.Parallel()
	p, _, other := newTwo(t, func(o *server.Options) { o.MaxStreams = 1 })
	p.acquire = func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
		if err := stream.Send(&lockv1.AcquireResponse{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	for range streamConnections {
		p.begin(within(t), p.dial(p.server.Addresses()[0]))
	}
	stream, err := lockv1.NewLockServiceClient(p.dial(p.server.Addresses()[0])).Acquire(within(t), &lockv1.AcquireRequest{})
	must(t, err)
	_, err = stream.Recv()
	same(t, "one too many", outcome(err), "ResourceExhausted QUOTA_EXCEEDED")
	p.begin(within(t), other)
}

func TestWhereThereIsOneCallerItHasAllStreamsOfItsConnections(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.Listen, o.MaxStreams = []string{o.Listen[0] + "?identity=one"}, 1 })
	p.acquire = func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
		if err := stream.Send(&lockv1.AcquireResponse{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	for range streamConnections + 1 {
		p.begin(within(t), p.dial(p.address()))
	}
}

func TestCheckAndReleaseAreReadThoughManyRequestsDoNotCome(t *testing.T) {
	t.Parallel()
	p, one, _ := newTwo(t, func(o *server.Options) { server.CompleteWithin(o, time.Hour) })
	for range mostUnread {
		incomplete(t, one, lockv1.LockService_Get_FullMethodName)
	}
	connection := p.dial(p.address())
	for told := ""; told != "ResourceExhausted QUOTA_EXCEEDED"; {
		told = get(t, connection) // until the last of them is known
	}
	locks := lockv1.NewLockServiceClient(connection)
	_, err := locks.Check(within(t), &lockv1.CheckRequest{})
	same(t, "a Check", outcome(err), "Unimplemented") // by the probe, which has read it
	_, err = locks.Release(within(t), &lockv1.ReleaseRequest{})
	same(t, "a Release", outcome(err), "Unimplemented")
}

func TestAStreamInBothDirectionsMayBeSilent(t *testing.T) {
	t.Parallel()
	_, one, _ := newTwo(t, func(o *server.Options) { o.Reflection = true; server.CompleteWithin(o, time.Second) })
	stream, err := reflectionpb.NewServerReflectionClient(one).ServerReflectionInfo(within(t))
	must(t, err)
	ask := func() {
		must(t, stream.Send(askServices))
		_, err = stream.Recv()
		must(t, err)
	}
	ask()
	late := incomplete(t, one, lockv1.LockService_Get_FullMethodName)
	same(t, "a request that does not come, which takes longer than the stream is silent", receive(t, late), "ResourceExhausted QUOTA_EXCEEDED")
	ask()
}

var askServices = &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}

func TestAWatchOfAnUnknownServicesHealthEnds(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	watch, err := healthpb.NewHealthClient(p.dial(p.address())).Watch(within(t), &healthpb.HealthCheckRequest{Service: "unknown"})
	must(t, err)
	_, err = watch.Recv()
	same(t, "unknown", outcome(err), "NotFound")
}

package endtoend

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// What bare stubs see, whose gRPC makes the status when the connection breaks.
func TestTheStreamOfAKilledSidecarsHoldEndsWithUnavailableAndWithoutAReason(t *testing.T) {
	e := ensembleOf(t, quickTick)
	s := startSidecar(t, setup{servers: e.ClientAddresses(), tick: quickTick, timeout: 6 * time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	stream, err := s.locks.Acquire(ctx, &lockv1.AcquireRequest{Name: "unreasoned"})
	must(t, err)
	event, err := stream.Recv()
	must(t, err)
	if event.GetGranted() == nil {
		t.Fatalf("it is not granted: %v", event)
	}
	s.kill()
	for err == nil {
		_, err = stream.Recv()
	}
	ended := status.Convert(err)
	if ended.Code() != codes.Unavailable || len(ended.Details()) > 0 || len(stream.Trailer().Get("sidekeeper-reason")) > 0 {
		t.Errorf("%v with %v and %v", ended, ended.Details(), stream.Trailer())
	}
}

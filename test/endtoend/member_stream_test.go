package endtoend

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// A joinStream is one Join stream of this process.
type joinStream struct {
	stream grpc.ServerStreamingClient[membershipv1.JoinResponse]
	cancel context.CancelFunc
}

func (s *sidecar) join(t *testing.T, request *membershipv1.JoinRequest) *joinStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	stream, err := s.groups().Join(ctx, request)
	must(t, err)
	return &joinStream{stream, cancel}
}

func (j *joinStream) next(t *testing.T) *membershipv1.JoinResponse {
	t.Helper()
	event, err := j.stream.Recv()
	must(t, err)
	return event
}

// joined waits until the caller is a member, and returns its incarnation.
func (j *joinStream) joined(t *testing.T) int64 {
	t.Helper()
	incarnation := j.next(t).GetJoined().GetIncarnation()
	if incarnation <= 0 {
		t.Fatalf("incarnation %d", incarnation)
	}
	return incarnation
}

func (j *joinStream) ends(t *testing.T, with string) {
	t.Helper()
	for {
		if _, err := j.stream.Recv(); err != nil {
			expect(t, with, err)
			return
		}
	}
}

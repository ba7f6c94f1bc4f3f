package console

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// unexplained is two contended locks that the sidecar lists, and explains with an error.
type unexplained struct {
	lockv1.LockServiceClient
	code codes.Code
}

func (unexplained) List(context.Context, *lockv1.ListRequest, ...grpc.CallOption) (*lockv1.ListResponse, error) {
	return &lockv1.ListResponse{Locks: []*lockv1.Lock{{Name: "orders", Contenders: 2}, {Name: "stock", Contenders: 2}}}, nil
}

func (u unexplained) Explain(context.Context, *lockv1.ExplainRequest, ...grpc.CallOption) (*lockv1.ExplainResponse, error) {
	return nil, status.Error(u.code, "not now")
}

func TestNoCallerIsSaidNotToWaitWhileTheEnsembleIsAway(t *testing.T) {
	t.Parallel()
	for code, known := range map[codes.Code]bool{codes.Unavailable: false, codes.DeadlineExceeded: false, codes.PermissionDenied: true} {
		seen, err := lookAt(t.Context(), unexplained{code: code})
		if (err == nil) != known || known && seen.Refused != 2 {
			t.Errorf("%v: %+v, %v", code, seen, err)
		}
	}
}

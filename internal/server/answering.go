package server

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

// answerTime is what calls get to be answered before a process ends that hands over, its streams open.
const answerTime = time.Second

// An answering counts the unary calls that have not been answered.
type answering struct{ underWay atomic.Int64 }

func (a *answering) unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	a.underWay.Add(1)
	defer a.underWay.Add(-1)
	return handler(ctx, request)
}

// await returns when all have been answered, and the answers have had a moment to leave; after most at the latest.
func (a *answering) await(most time.Duration) {
	const moment = 50 * time.Millisecond
	looks := time.NewTicker(moment / 10)
	defer looks.Stop()
	quiet, end := time.Now().Add(moment), time.Now().Add(most)
	for at := range looks.C {
		switch {
		case at.After(end):
			return
		case a.underWay.Load() > 0:
			quiet = at.Add(moment)
		case at.After(quiet):
			return
		}
	}
}

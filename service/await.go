package service

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sidekeeper/sidekeeper/internal/caller"
)

// holdNothing runs the wait of a stream that has nothing in the ensemble but watches, until it is over, its caller has left, or it may not
// go on. What the wait tells is sent unless the wait is over first.
func holdNothing[T, M any](
	services *Services, stream grpc.ServerStreamingServer[M], wait func(ctx context.Context, tell func(*M)) (T, error),
) (nothing T, _ error) {
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return nothing, err
	}
	ended := overOf(stream.Context())
	box := newOutbox(ended, stream.Send)
	waiting := run(func() (T, error) {
		return wait(ended.ctx, func(message *M) { box.Put(topicPlace, func() (*M, bool) { return message, true }) })
	})
	caller.AfterStatus(stream.Context(), func() {
		ended.end(nil)
		<-waiting.over.Done()
		box.Wait()
	})
	select {
	case <-waiting.over.Done():
		return waiting.wait()
	case <-ended.Done():
		return nothing, ended.why()
	case <-services.drain.notice:
		return nothing, errStopping
	}
}

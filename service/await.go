package service

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sidekeeper/sidekeeper/internal/caller"
)

// holdNothing runs the wait of a stream that has nothing in the ensemble but watches, until it is over, its caller has left, or it may not
// go on. What the wait tells is sent unless the wait is over first, and what it returns is sent last, unless that is nil. The message keepalive
// is sent if the request asks for it.
func holdNothing[M any](
	services *Services, request keptAlive, stream grpc.ServerStreamingServer[M], keepalive *M,
	wait func(ctx context.Context, tell func(*M)) (last *M, err error),
) error {
	every, err := parseKeepalive(request)
	if err != nil {
		return err
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	ended := overOf(stream.Context())
	box := newOutbox(ended, stream.Send)
	keepAlive(box, every, keepalive)
	waiting := run(func() (*M, error) {
		return wait(ended.ctx, func(message *M) { box.Put(topicPlace, func() (*M, bool) { return message, true }) })
	})
	caller.AfterStatus(stream.Context(), func() {
		ended.end(nil)
		<-waiting.over.Done()
		box.Wait()
	})
	select {
	case <-waiting.over.Done():
	case <-ended.Done():
		return ended.why()
	case <-services.drain.notice:
		return errStopping
	}
	last, err := waiting.wait()
	if last == nil {
		return err
	}
	sent := make(chan struct{})
	box.Tell(last, func() { close(sent) })
	select {
	case <-sent:
		return nil
	case <-ended.Done():
		return ended.why()
	}
}

package service_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// A stepwise caller takes a message of its stream when the test says so: no transport takes any before.
type stepwise struct {
	grpc.ServerStream

	ctx  context.Context // of the stream
	take chan struct{}
	got  []string
}

func (s *stepwise) Context() context.Context     { return s.ctx }
func (s *stepwise) SendHeader(metadata.MD) error { return nil }

func (s *stepwise) Send(message *configv1.WatchResponse) error {
	<-s.take
	s.got = append(s.got, expect.Watched(message))
	return nil
}

// A configServer is where a service registers itself, to be called without a network.
type configServer struct{ configv1.ConfigServiceServer }

func (c *configServer) RegisterService(_ *grpc.ServiceDesc, service any) {
	if config, ok := service.(configv1.ConfigServiceServer); ok {
		c.ConfigServiceServer = config
	}
}

// A caller that reads slowly is told of the newest state of each key, once.
func TestASlowCallerIsToldOfTheNewestOnly(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var config configServer
		newEmptyScene(t).services.Register(&config)
		ctx, cancel := context.WithCancel(t.Context())
		within := caller.StatsHandler{}.TagRPC(ctx, nil)
		afterStatus := func() { caller.StatsHandler{}.HandleRPC(within, &stats.End{}) }
		own := &stepwise{ctx: within, take: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- config.Watch(&configv1.WatchRequest{AsText: true}, own) }()
		synctest.Wait()
		put := func(keys ...string) {
			for _, key := range keys {
				_, err := config.Put(ctx, &configv1.PutRequest{Key: key, Content: &configv1.PutRequest_Text{Text: "x"}})
				if err != nil {
					t.Error(err)
				}
				synctest.Wait()
			}
		}
		put("a", "a", "b", "c")
		for _, key := range []string{"c", "b"} {
			if _, err := config.Delete(ctx, &configv1.DeleteRequest{Key: key}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		put("b", "d")
		for range 2 {
			own.take <- struct{}{}
			synctest.Wait()
		}
		put("d", "d", "d", "a")
		for range 2 {
			own.take <- struct{}{}
			synctest.Wait()
		}
		cancel()
		<-ended
		afterStatus()
		expect.Same(t, "messages", strings.Join(own.got, " | "), "synced | a=x@v2 coalesced b=x@v1 d=x@v1 | d=x@v2 | d=x@v4 coalesced a=x@v3")
	})
}

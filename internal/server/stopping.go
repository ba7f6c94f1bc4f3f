package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/sidekeeper/sidekeeper/internal/httpconns"
)

// stopTimeout is what calls that have been told to end get until their connections are cut.
const stopTimeout = 2 * time.Second

func (s *Server) stop(ctx context.Context) error {
	s.options.Log.Info("stopping", zap.Duration("drain", s.options.DrainTimeout))
	s.health.Shutdown()
	bounded, cancel := context.WithTimeout(ctx, s.options.DrainTimeout+s.options.SilenceTimeout)
	defer cancel()
	err := s.handlers.Drain(bounded, s.options.DrainTimeout)
	if err != nil {
		err = fmt.Errorf("draining: %w", err)
	}
	if s.options.HandedOver != nil {
		s.answering.await(answerTime)
		s.options.Log.Info("stopped: the leases that can be resumed are left to the next process", zap.Error(err))
		s.options.HandedOver()
	}
	var closing errgroup.Group
	for _, server := range s.grpc {
		closing.Go(func() error { return closeGRPC(server) })
	}
	return errors.Join(err, closing.Wait(), s.closeHTTP(ctx))
}

func (s *Server) closeHTTP(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var group errgroup.Group
	for _, server := range s.http {
		group.Go(func() error { return httpconns.Stop(ctx, server) })
	}
	return group.Wait()
}

// closeGRPC tells callers to go away, lets calls under way end, and cuts the connections of those that do not. It is bounded,
// though GracefulStop waits for every handler: one that hangs when all is drained is left behind, since the process is about
// to end.
func closeGRPC(server *grpc.Server) error {
	closed := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-time.After(stopTimeout):
	}
	server.Stop()
	select {
	case <-closed:
		return nil
	case <-time.After(stopTimeout):
		return errors.New("a call does not end")
	}
}

package server

import (
	"context"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/budget"
	"github.com/sidekeeper/sidekeeper/service"
)

// interceptorsOf are what every call goes through, outermost first. What is streamed is read by the budget, and judged as it is read.
func interceptorsOf(admits *admissions, of *budget.Budget) []grpc.ServerOption {
	memory := of.Answers()
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(admits.unary, recovery.UnaryServerInterceptor(), memory.Unary),
		grpc.ChainStreamInterceptor(of.Stream, admits.stream, recovery.StreamServerInterceptor(), memory.Stream),
	}
}

func (a *admissions) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	call := a.open(ctx, info.FullMethod, unaryCall)
	call.request = request
	if err = call.judge(request); err == nil {
		reply, err = handler(call.ctx, request)
	}
	if err == nil {
		call.sent.Inc()
	}
	return reply, call.End(err)
}

// stream keeps no more on its stack than it must while the stream is open, and so do RecvMsg and whatever else a stream's goroutine waits in:
// a stack is of 8 KiB or of 16.
func (a *admissions) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	call := a.open(stream.Context(), info.FullMethod, kindOf(info))
	err := call.enter()
	if err == nil {
		err = handler(server, &admittedStream{stream, call})
	}
	return call.End(err)
}

// An admittedStream hands no request to its handler that is not let in.
type admittedStream struct {
	grpc.ServerStream

	call *admission
}

// Context implements grpc.ServerStream.
func (s *admittedStream) Context() context.Context { return s.call.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *admittedStream) RecvMsg(request any) error {
	if err := s.ServerStream.RecvMsg(request); err != nil {
		return err
	}
	if s.call.judged && s.call.method == leasev1.LeaseService_Multiplex_FullMethodName {
		s.call.received.Inc()
		return nil // what comes inside of it is judged by itself
	}
	return s.call.judge(request)
}

// SendMsg implements grpc.ServerStream.
func (s *admittedStream) SendMsg(message any) error {
	err := s.ServerStream.SendMsg(message)
	if err == nil {
		s.call.sent.Inc()
	}
	return err
}

// reasonTrailer carries an error's reason to clients without the library of rich errors.
const reasonTrailer = "sidekeeper-reason"

// An answered error is what the caller is told, with its cause for the log.
type answered struct {
	status *status.Status
	reason string
	cause  error
}

func (a *answered) Error() string              { return a.cause.Error() }
func (a *answered) Unwrap() error              { return a.cause }
func (a *answered) GRPCStatus() *status.Status { return a.status }

// tellEarly is what a caller is told of an error that the interceptors do not meet, as they would tell it.
func (m *Metrics) tellEarly(ctx context.Context, err error) *status.Status {
	answer, reason := service.StatusOf(err)
	if reason != "" {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(reasonTrailer, reason)) // fails only for a call that has ended
		m.refused(answer, reason)
	}
	return answer
}

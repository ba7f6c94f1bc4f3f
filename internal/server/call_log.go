package server

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/methods"
)

// A callLog writes one line per call, when it has ended. Requests and replies never stand in it, since ids of leases and holds are
// secrets.
type callLog struct{ log *zap.Logger }

func (c callLog) finished(ctx context.Context, method string, began time.Time, err error) {
	code := status.Code(err)
	line := c.log.Check(levelOf(method, code), "finished call")
	if line == nil {
		return
	}
	call := caller.CallOf(ctx)
	service, name := splitMethod(method)
	fields := [...]zap.Field{
		call.Number(), zap.String("caller", caller.Of(ctx).Identity), zap.String("grpc.service", service), zap.String("grpc.method", name),
		zap.Stringer("grpc.code", code), zap.Float64("grpc.time_ms", float64(time.Since(began).Microseconds())/1000),
		call.Lease(), tracedAs(ctx), zap.Skip(), zap.Skip(),
	}
	if err != nil {
		fields[8] = zap.String("grpc.error", err.Error())
	}
	if told, ok := errors.AsType[*answered](err); ok && told.reason != "" {
		fields[9] = zap.String("reason", told.reason)
	}
	line.Write(fields[:]...)
}

// levelOf is how much a call's end matters to whoever runs the sidecar: what callers did wrong or lost is normal, and that all went well
// with what programs do all the time, such as probes and the console, is a detail. So a lock is one line, that of its Acquire.
func levelOf(method string, code codes.Code) zapcore.Level {
	switch code {
	case codes.OK:
		if of := methods.Of(method); of == nil || of.Frequent { // nil for health and reflection
			return zap.DebugLevel
		}
		return zap.InfoLevel
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return zap.ErrorLevel
	case codes.Unavailable, codes.ResourceExhausted:
		return zap.WarnLevel
	default:
		return zap.InfoLevel
	}
}

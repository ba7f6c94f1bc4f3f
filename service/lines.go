package service

import (
	"context"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"go.uber.org/zap"
)

// What the log calls a call and the lease it stands on. The line of a call has both; those of its lease say which call opened
// it.
const (
	callWord  = "call"
	leaseWord = "lease"
)

// numbered gives a call its number.
func numbered(ctx context.Context, number uint64) context.Context {
	return logging.InjectFields(ctx, logging.Fields{callWord, number})
}

// callField is the call that ctx belongs to; nothing if it has no number.
func callField(ctx context.Context) zap.Field {
	for each := logging.ExtractFields(ctx).Iterator(); each.Next(); {
		if word, number := each.At(); word == callWord {
			return zap.Any(callWord, number)
		}
	}
	return zap.Skip()
}

// standsOn notes for the line of the call which lease it stands on. It is called by the call's handler alone.
func standsOn(ctx context.Context, on *lease) {
	logging.AddFields(ctx, logging.Fields{leaseWord, on.logID})
}

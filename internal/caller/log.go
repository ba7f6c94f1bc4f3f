package caller

import (
	"context"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"go.uber.org/zap"
)

// callWord is what the log calls a call. The line of a call has it; those of its lease say which call opened it.
const callWord = "call"

// numbered gives a call its number.
func numbered(ctx context.Context, number uint64) context.Context {
	return logging.InjectFields(ctx, logging.Fields{callWord, number})
}

// CallField is the call that ctx belongs to; nothing if it has no number.
func CallField(ctx context.Context) zap.Field {
	for each := logging.ExtractFields(ctx).Iterator(); each.Next(); {
		if word, number := each.At(); word == callWord {
			return zap.Any(callWord, number)
		}
	}
	return zap.Skip()
}

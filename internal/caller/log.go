package caller

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

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

// Fields are who calls, for the audit log: with the user that logged in, where the kernel knows one, who need not be the user of the
// process (sudo).
func (c Caller) Fields() []zap.Field {
	fields := []zap.Field{zap.String("caller", c.Identity)}
	if login, known := c.loginUser(); known {
		fields = append(fields, zap.Uint64("login", login))
	}
	return fields
}

// loginUser is the user id that the peer's process was logged in with; see proc_pid_loginuid(5).
func (c Caller) loginUser() (uid uint64, known bool) {
	if c.Process == 0 {
		return 0, false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/loginuid", c.Process))
	if err != nil {
		return 0, false
	}
	uid, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return uid, err == nil && uid != math.MaxUint32
}

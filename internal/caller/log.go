package caller

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"go.uber.org/zap"
)

// A Call is what the log says of one call besides its outcome.
type Call struct {
	number uint64 // 0 for a call that has none
	lease  string // that it stood on; set by its handler alone
}

// callKey is of the call in the context of its handler.
type callKey struct{}

// numbered gives a call its number.
func numbered(ctx context.Context, number uint64) context.Context {
	return context.WithValue(ctx, callKey{}, &Call{number: number})
}

// CallOf is the call that ctx belongs to.
func CallOf(ctx context.Context) *Call {
	if call, ok := ctx.Value(callKey{}).(*Call); ok {
		return call
	}
	return &Call{}
}

// StandsOn has the call's line name the lease that the call stood on. It is for the call's handler alone.
func (c *Call) StandsOn(lease string) { c.lease = lease }

// Number is the field that the line of a call has, and those of its lease, which say which call opened it.
func (c *Call) Number() zap.Field {
	if c.number == 0 {
		return zap.Skip()
	}
	return zap.Uint64("call", c.number)
}

// Lease is the field that names a lease; nothing if the call stood on none.
func (c *Call) Lease() zap.Field {
	if c.lease == "" {
		return zap.Skip()
	}
	return zap.String("lease", c.lease)
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

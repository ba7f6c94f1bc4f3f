// Package caller is who calls: how it is known when it connects, whether it has left or fallen silent, what is done once a call of its has
// its status, and whether it is an operator.
package caller

import (
	"context"

	"google.golang.org/grpc/peer"

	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// A Caller is who stands at the other end of the connection that a call came over. Leases and holds are bound to its
// identity; nothing a request says can change it.
type Caller struct {
	Identity string // `uid:1000`, `socket:app`, `spiffe://…`; see package policy. Never empty for a call from the network
	Operator bool   // whether it came over the operators' listener
	Process  int32  // the peer's process id on a Unix socket, 0 elsewhere; for the log only
	Unix     bool   // whether its connection is a Unix socket's, which nothing but its two ends can break

	Ending *Ending
	Slot   Slot // that its connection takes
}

// Distinct is the caller's identity as it is shown to others: empty if it tells nobody apart, as of any process on loopback.
func (c Caller) Distinct() string {
	if c.Identity == policy.Loopback {
		return ""
	}
	return c.Identity
}

// Of returns who calls. A context without a connection has the zero caller, which is nobody.
func Of(ctx context.Context) Caller {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return Caller{}
	}
	caller, _ := from.AuthInfo.(Caller)
	return caller
}

// operatingKey is of what is in the context of a call that operates.
type operatingKey struct{}

// Operating is the context of a call with which the caller may do what operators do.
func Operating(ctx context.Context) context.Context {
	return context.WithValue(ctx, operatingKey{}, true)
}

// MayOperate says whether the caller may do with this call what is for operators.
func MayOperate(ctx context.Context) bool {
	return ctx.Value(operatingKey{}) != nil || Of(ctx).Operator
}

// AuthType makes caller a credentials.AuthInfo, which is how it travels from the handshake to the call.
func (c Caller) AuthType() string { return "sidekeeper" }

// Left is closed when the caller's kernel has closed its connection; nil if there is none. A caller
// closes it when it has read that the sidecar takes no more calls, and that all its streams have ended.
func (c Caller) Left() <-chan struct{} {
	if c.Ending == nil {
		return nil
	}
	return c.Ending.Left()
}

// FellSilent says, once a stream's context has ended, whether its caller may still be alive and counting on what it was
// told: its connection was given up (keepalive ran out, the network dropped it) without a word from the peer's kernel.
// It is false when the caller cancelled, when its death is certain, and while the connection is open.
func (c Caller) FellSilent() bool {
	return c.Ending != nil && c.Ending.silent()
}

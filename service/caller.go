package service

import (
	"context"

	"google.golang.org/grpc/peer"
)

// A caller is who stands at the other end of the connection that a call came over. Leases and holds are bound to its
// identity; nothing a request says can change it.
type caller struct {
	identity string // `uid:1000`, `socket:app`, `spiffe://…`; see package policy. Never empty for a call from the network
	operator bool   // whether it came over the operators' listener
	process  int32  // the peer's process id on a Unix socket, 0 elsewhere; for the log only

	ending *ending
	slot   slot // that its connection takes
}

// callerOf returns who calls. A context without a connection has the zero caller, which is nobody.
func callerOf(ctx context.Context) caller {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return caller{}
	}
	caller, _ := from.AuthInfo.(caller)
	return caller
}

// operatingKey is of what is in the context of a call that operates.
type operatingKey struct{}

// operating is the context of a call with which the caller may do what operators do.
func operating(ctx context.Context) context.Context {
	return context.WithValue(ctx, operatingKey{}, true)
}

// mayOperate says whether the caller may do with this call what is for operators.
func mayOperate(ctx context.Context) bool {
	return ctx.Value(operatingKey{}) != nil || callerOf(ctx).operator
}

// AuthType makes caller a credentials.AuthInfo, which is how it travels from the handshake to the call.
func (c caller) AuthType() string { return "sidekeeper" }

// left is closed when the caller's kernel, or the caller in words, has closed its connection; nil if there is none. A caller
// closes it when it has read that the sidecar takes no more calls, and that all its streams have ended.
func (c caller) left() <-chan struct{} {
	if c.ending == nil {
		return nil
	}
	return c.ending.left()
}

// fellSilent says, once a stream's context has ended, whether its caller may still be alive and counting on what it was
// told: its connection was given up (keepalive ran out, the network dropped it) without a word from the peer's kernel.
// It is false when the caller cancelled, when its death is certain, and while the connection is open.
func (c caller) fellSilent() bool {
	return c.ending != nil && c.ending.silent()
}

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

	ending  *ending
	streams *streamCount
	pace    *pace
	guest   *guest
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

// AuthType makes caller a credentials.AuthInfo, which is how it travels from the handshake to the call.
func (c caller) AuthType() string { return "sidekeeper" }

// left is closed when the caller's kernel, or the caller in words, has closed its connection; nil if there is none. A caller
// closes it when it has read that the sidecar takes no more calls, and that all its streams have ended.
func (c caller) left() <-chan struct{} {
	if c.ending == nil {
		return nil
	}
	return c.ending.left
}

// fellSilent says, once a stream's context has ended, whether its caller may still be alive and counting on what it was
// told: its connection was given up (keepalive ran out, the network dropped it) without a word from the peer's kernel.
// It is false when the caller cancelled, when its death is certain, and while the connection is open.
func (c caller) fellSilent() bool {
	return c.ending != nil && c.ending.silent()
}

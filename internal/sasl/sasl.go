// Package sasl proves to a server of ZooKeeper who a client is, and has the server prove who it is. It knows the two mechanisms of SASL that
// these servers know: GSSAPI, which is Kerberos, and DIGEST-MD5. It makes tokens and reads them; another package carries them to the server.
//
// A library speaks with the key distribution center (KDC) and encrypts. What stands here are the tokens, and which ticket is used for how long.
package sasl

import (
	"context"
	"errors"
)

// The mechanisms, as servers name them.
const (
	GSSAPI    = "GSSAPI"
	DigestMD5 = "DIGEST-MD5"
)

// An Identity is who the client is, and what proves it.
type Identity interface {
	// Mechanism is GSSAPI or DigestMD5.
	Mechanism() string
	// String says who the client is, and by which mechanism.
	String() string
	// Ready returns once there is what an exchange with this host takes: a ticket. If none can be had, the error says why. The end of ctx ends
	// the wait, not the request for a ticket. The error is ErrUnreached if no KDC has answered yet.
	Ready(ctx context.Context, host string) error
	// Begin begins an exchange with the server at this host.
	Begin(host string) (Exchange, error)
	// Refused takes in that the server at this host has refused the client.
	Refused(host string)
	// Keep gets new tickets before the old ones run out, until ctx ends. It calls failed when there is none to be had for a host. It forgets a
	// host that is not needed, a day after the last exchange with it.
	Keep(ctx context.Context, needed func(host string) bool, failed func(host string, err error))
}

// An Exchange is one conversation that proves both sides.
type Exchange interface {
	// Next takes what the server has answered, nothing at first, and returns what to send next. When done, there is nothing more to send, and
	// both sides are proved.
	Next(answer []byte) (token []byte, done bool, err error)
}

// ErrUnreached wraps that no KDC answers: nothing is known of the ticket that was asked for.
var ErrUnreached = errors.New("the KDC does not answer")

// ErrNothing means that a server has answered nothing where its mechanism demands a token. A server with allowSaslFailedClients=true answers a
// token like this that it refuses, and one without SASL answers every token like this.
var ErrNothing = errors.New("the server answered without a token: it takes part in no SASL, or refuses the client and hides it " +
	"(allowSaslFailedClients)")

// errUnproved wraps why a server is not proved to be the one that was meant.
var errUnproved = errors.New("the server has not proved who it is")

// guarded makes an error of a panic: the library reads what a server has sent without looking at all lengths.
func guarded(exchange Exchange) Exchange { return guard{exchange} }

type guard struct{ Exchange }

func (g guard) Next(answer []byte) (token []byte, done bool, err error) {
	defer func() { err = orPanic(err, recover(), "the server's token cannot be read") }()
	return g.Exchange.Next(answer)
}

// orPanic is the error, or that of a panic.
func orPanic(err error, cause any, what string) error {
	if cause != nil {
		return errors.New(what)
	}
	return err
}

package lease

import (
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// An Instant is a time on the driver's clock, which never goes back.
type Instant time.Duration

// A Connection is one over which a caller is told something. 0 is none.
type Connection uint64

// An ID is a request's, which no other request of the lease has had. 0 stands for the lease itself.
type ID uint64

// A Parting is how a hold has ended, for those who count on it.
type Parting uint8

// How a hold may end.
const (
	Forced    Parting = iota // by another hand than its caller's: all count who were told of the hold or of its lease
	Released                 // by its caller, in another call or message: as Forced, until the caller has acknowledged that
	Cancelled                // by its caller, which has ended the stream in words: those alone count who were told of this very hold
	Deserted                 // by its caller's deadline, silence or connection: as Forced
)

// A Kind is what has happened.
type Kind uint8

// In parentheses: the fields of the event that say more.
const (
	Began        Kind = iota + 1 // a request has (Of, On: its caller's connection; Carried)
	Granted                      // it has been (Of, Token; Carried says how its caller is told)
	Told                         // the sidecar is about to tell a caller of a validity (Of, On, For). Refused if the hold has ended
	Stopped                      // the caller of a carried request counts on it no more (Of)
	Acknowledged                 // the same, of a hold that has ended or is about to (Of)
	Ended                        // nothing is told of it any more (Of, Parting, Asked, Free)
	Handed                       // its end has been handed to the transport (Of)
	Unread                       // its end never will be, for its caller does not read the stream (Of)
	Departed                     // the peer has closed the connection: no caller counts over it (On)
	Closed                       // the caller has closed the lease: over this connection no caller counts on it (On)
	Lost                         // the session is over, and with it all that was told
	Ticked                       // the Deadline has come
	Forgotten                    // nothing more happens to the request (Of)
)

// An Event is one thing that has happened.
type Event struct {
	Kind    Kind
	Of      ID
	On      Connection
	For     time.Duration // from now on
	Token   int64
	Parting Parting
	Carried bool // the request stands on the lease's own stream, on which what is told of the lease comes before its end
	Asked   bool // its end was asked for by its caller
	Free    bool // no caller counts on it: it was never held, or its place is gone
}

// A Do is what is to be done.
type Do uint8

// What may be to be done.
const (
	Refuse  Do = iota + 1 // tell nothing
	Leave                 // the place may go: no caller counts on it (Of)
	Watch                 // say when the connection has Departed (On)
	Unwatch               // that is of no use any more (On)
	Record                // write down a step, for those who hold it against the models (Token, 0 for the lease; Step, For)
)

// An Effect is one thing that is to be done, in order.
type Effect struct {
	Do    Do
	Of    ID
	On    Connection
	Token int64
	Step  trace.Kind
	For   time.Duration
}

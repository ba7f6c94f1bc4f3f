// Package trace has the running code say what it does with sessions and places, one step at a time, to whoever listens. What it says can then
// be held against the models in TLA+ (test/spec).
//
// In a running sidecar nobody listens, and a step costs the load of a pointer. A step is told in the instant in which it is done, and before
// anybody can act on it: so the order in which steps are told is one in which they can have been done.
package trace

import (
	"sync/atomic"
	"time"
)

// A Kind is what a step does.
type Kind string

// What is done with sessions, with places in the queues of locks, and with holds on the way to their callers.
const (
	Opened   Kind = "opened"   // the ensemble has made the session
	Attached Kind = "attached" // the session has come back over another connection
	Proved   Kind = "proved"   // a transaction of the session was answered
	Read     Kind = "read"     // a heartbeat of the session's was answered that is a plain read
	Shared   Kind = "shared"   // a request of the session counts by a transaction of another one
	Slept    Kind = "slept"    // nothing has stood on the session for its timeout
	Woken    Kind = "woken"    // it is proved again
	Closing  Kind = "closing"  // whoever has the session gives it up
	Replaced Kind = "replaced" // the session owned nothing, and is closed at the ensemble for the one that comes after it
	Over     Kind = "over"     // the session has ended here: nothing more is written on it

	Asked   Kind = "asked"   // the making of a place is about to be asked for
	Made    Kind = "made"    // it was answered: the place stands
	Found   Kind = "found"   // it was not, and the place was found standing
	Absent  Kind = "absent"  // there is no such place, and there never will be
	Granted Kind = "granted" // the place is held
	Leaving Kind = "leaving" // the place is about to be deleted: nobody counts on it
	Left    Kind = "left"    // the ensemble has answered that it is gone

	Buried Kind = "buried" // whoever had the session has ended: the ensemble may be asked to close it, though it was lost

	Held         Kind = "held"         // the hold has a stream of its own, which tells its caller of it
	Carried      Kind = "carried"      // the same, but it is its lease's stream, which goes on when the hold has ended
	Promised     Kind = "promised"     // a caller is about to be told that it holds, for as long as Until says
	Released     Kind = "released"     // the hold is over for its caller, who has given it up: it is told nothing of it any more
	Ended        Kind = "ended"        // the same, but it was not asked for
	Status       Kind = "status"       // the hold's end was handed to the transport: its stream's status or, on its lease's stream, a message
	Unread       Kind = "unread"       // it was not, for nobody reads its lease's stream any more
	Stopped      Kind = "stopped"      // the caller has given the hold up on that stream, or acknowledged its end: it counts on nothing of it
	Acknowledged Kind = "acknowledged" // the caller has said that it does not count on the hold
	Deserted     Kind = "deserted"     // whoever counted on the ended hold, and had been told for longer, has left
)

// A Step is one thing that was done. All times are by the sidecar's clock.
type Step struct {
	Kind    Kind
	Session int64  // 0 if the place's tells which it is
	By      int64  // Shared's alone: the session whose transaction it was
	Place   string // the path of the place's node; before that is known, what it begins with
	Token   int64  // Granted's fencing token, and that of a hold; 0 where a caller is told of the lease

	Sent, Answered time.Duration        // the handshake or the transaction
	Until          time.Duration        // the session is alive until then for certain, as far as its proof goes; for Promised, from now on
	Clock          func() time.Duration // the sidecar's clock; Opened's alone
}

var listener atomic.Pointer[func(Step)]

// Told says whether anybody listens: whoever would have to compute something for a step asks before.
func Told() bool { return listener.Load() != nil }

// Tell tells whoever listens of a step.
func Tell(step Step) {
	if listen := listener.Load(); listen != nil {
		(*listen)(step)
	}
}

// Listen has each step of the process told to listen from now on, in the goroutine that takes it and perhaps under locks: it must not wait for
// anything, nor call what it is told of. One at a time can listen.
func Listen(listen func(Step)) (stop func()) {
	listener.Store(&listen)
	return func() { listener.Store(nil) }
}

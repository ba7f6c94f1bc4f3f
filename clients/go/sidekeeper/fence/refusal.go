package fence

import (
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A Reason says why a call does not pass.
type Reason string

// The reasons, with what a caller gets in gRPC and HTTP.
const (
	Malformed Reason = "malformed" // the header breaks its grammar: INVALID_ARGUMENT, 400
	Missing   Reason = "missing"   // there is no ticket, or none of a lock that is wanted: FAILED_PRECONDITION, 428
	Stale     Reason = "stale"     // a larger token of the lock has been seen: FAILED_PRECONDITION, 412
	NotHeld   Reason = "not held"  // Options.Verify says that the hold does not last: FAILED_PRECONDITION, 412
	Undecided Reason = "undecided" // the Store or Options.Verify has failed: UNAVAILABLE, 503
)

var answers = map[Reason]struct {
	code codes.Code
	http int
}{
	Malformed: {codes.InvalidArgument, http.StatusBadRequest},
	Missing:   {codes.FailedPrecondition, http.StatusPreconditionRequired},
	Stale:     {codes.FailedPrecondition, http.StatusPreconditionFailed},
	NotHeld:   {codes.FailedPrecondition, http.StatusPreconditionFailed},
	Undecided: {codes.Unavailable, http.StatusServiceUnavailable},
}

// A Refusal is the error of a call that does not pass. Nothing of the call has been carried out.
type Refusal struct {
	Reason  Reason
	Lock    string // which lock; empty where it is about none, or several
	Token   int64  // that of the call, if Stale or NotHeld
	Largest int64  // what the gate has seen, if Stale; what the lock is held with, if NotHeld; 0 if the lock has no holder
	message string
	cause   error
}

func (r *Refusal) Error() string { return r.message }

// Unwrap is what has failed, if Undecided.
func (r *Refusal) Unwrap() error { return r.cause }

// GRPCStatus is what a caller in gRPC gets.
func (r *Refusal) GRPCStatus() *status.Status { return status.New(answers[r.Reason].code, r.message) }

// HTTPStatus is what a caller in HTTP gets.
func (r *Refusal) HTTPStatus() int { return answers[r.Reason].http }

func missing(lock string) *Refusal {
	if lock == "" {
		return &Refusal{Reason: Missing, message: Header + ": no ticket"}
	}
	return &Refusal{Reason: Missing, Lock: lock, message: Header + ": no ticket of lock " + lock}
}

func stale(ticket sidekeeper.Ticket, largest int64) *Refusal {
	return &Refusal{Reason: Stale, Lock: ticket.Lock, Token: ticket.FencingToken, Largest: largest, message: fmt.Sprintf(
		"lock %s: fencing token %d is stale, since %d has been seen: the lock was granted to another holder",
		ticket.Lock, ticket.FencingToken, largest,
	)}
}

func notHeld(ticket sidekeeper.Ticket, current int64) *Refusal {
	otherwise := fmt.Sprintf("but with %d", current)
	if current == 0 {
		otherwise = "nor with any other"
	}
	return &Refusal{Reason: NotHeld, Lock: ticket.Lock, Token: ticket.FencingToken, Largest: current, message: fmt.Sprintf(
		"lock %s is not held with fencing token %d, %s", ticket.Lock, ticket.FencingToken, otherwise,
	)}
}

func undecided(cause error) *Refusal {
	return &Refusal{Reason: Undecided, cause: cause, message: "whether the tickets of " + Header + " are stale cannot be told at present"}
}

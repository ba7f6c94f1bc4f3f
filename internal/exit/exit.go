// Package exit gives every error of a command its exit code, and one line that explains it.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Exit codes, besides 0 and those of a command that was run. Where possible they mean what sysexits.h says.
const (
	Failed        = 1
	Usage         = 64
	Unreachable   = 69 // the sidecar or the ensemble
	Lost          = 70 // the lock was lost, and the command ended for it
	NotObtained   = 75
	Denied        = 77
	NotExecutable = 126 // the command is there
	NoCommand     = 127
	Signal        = 128 // and the signal's number
)

// A coded error ends the program with its code. Without a cause there is nothing to print.
type coded struct {
	code  int
	cause error
}

func (e coded) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.cause.Error()
}

func (e coded) Unwrap() error { return e.cause }

// With is an error that ends the program with a code, silently if cause is nil.
func With(code int, cause error) error { return coded{code, cause} }

// NotStarted is for a command that could not be started, with the codes of shells.
func NotStarted(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOEXEC) {
		return With(NotExecutable, err)
	}
	return With(NoCommand, err)
}

// UsageError is for a program that was called with wrong arguments.
func UsageError(err error) error { return With(Usage, err) }

// exits is what each error ends the program with. The first match wins.
var exits = []struct {
	err  error
	code int
}{
	{sidekeeper.ErrLost, Lost},
	{sidekeeper.ErrGuardLost, Lost},
	{sidekeeper.ErrSuperseded, Lost},
	{sidekeeper.ErrClaimEnded, Lost},
	{sidekeeper.ErrLockHeld, NotObtained},
	{sidekeeper.ErrSemaphoreFull, NotObtained},
	{sidekeeper.ErrQueueEmpty, NotObtained},
	{sidekeeper.ErrWaitTimeout, NotObtained},
	{sidekeeper.ErrMemberExists, NotObtained},
	{sidekeeper.ErrPreconditionFailed, NotObtained},
	{sidekeeper.ErrNotRepeated, NotObtained},
	{sidekeeper.ErrKeyRunning, NotObtained},
	{sidekeeper.ErrNoProcess, NotObtained},
	{sidekeeper.ErrLeaseLost, Unreachable}, // while waiting: the ensemble was away for too long
	{context.DeadlineExceeded, Unreachable},
}

// codeExits is what a status ends the program with whose reason does not.
var codeExits = map[codes.Code]int{
	codes.InvalidArgument:   Usage,
	codes.Aborted:           NotObtained, // before a grant: try again
	codes.Unavailable:       Unreachable,
	codes.DeadlineExceeded:  Unreachable,
	codes.ResourceExhausted: NotObtained,
	codes.PermissionDenied:  Denied,
	codes.Unauthenticated:   Denied,
}

// An unreached error is one of a sidecar that could not be reached, and why.
type unreached struct {
	error
	cause string
}

func (u unreached) Unwrap() error { return u.error }

// Because is err, of a sidecar that could not be reached, with what a person can do about it.
func Because(err error, cause string) error { return unreached{err, cause} }

// Code is what the program exits with after err.
func Code(err error) int {
	if err == nil {
		return 0
	}
	if e := (coded{}); errors.As(err, &e) {
		return e.code
	}
	for _, exit := range exits {
		if errors.Is(err, exit.err) {
			return exit.code
		}
	}
	if e := (*sidekeeper.Error)(nil); errors.As(err, &e) && codeExits[e.Code] != 0 {
		return codeExits[e.Code]
	}
	return Failed
}

// Explain is err in one line for a person; address is the sidecar that may have caused it. It is empty if there is nothing to print.
func Explain(err error, address string) string {
	if err == nil {
		return ""
	}
	if e := (coded{}); errors.As(err, &e) && e.cause == nil {
		return ""
	}
	line := err.Error()
	if e := (*sidekeeper.Error)(nil); errors.As(err, &e) {
		said := explainStatus(e, address)
		if u := (unreached{}); errors.As(err, &u) {
			said = cannotReach(address, u.cause)
		}
		line = strings.Replace(line, e.Error(), said, 1)
	}
	return strings.ReplaceAll(line, "\n", "; ")
}

func explainStatus(e *sidekeeper.Error, address string) string {
	switch {
	case len(e.Fields) > 0:
		return explainFields(e)
	case errors.Is(e, sidekeeper.ErrOperatorOnly):
		return e.Message + " (OPERATOR_ONLY): use the operators' socket, see --operator-address"
	case errors.Is(e, sidekeeper.ErrNotRecorded):
		return e.Message + " (NOT_RECORDED): the sidecar's log names the file, such as its audit log, and the cause"
	case e.Reason != "":
		return fmt.Sprintf("%s (%s)", e.Message, e.Reason)
	case errors.Is(e, context.DeadlineExceeded):
		return fmt.Sprintf("the sidecar at %s does not answer in time", address)
	case e.Code == codes.Unavailable:
		return cannotReach(address, transportCause(e.Message))
	default:
		return e.Error()
	}
}

func cannotReach(address, cause string) string {
	return fmt.Sprintf("cannot reach the sidecar at %s: %s", address, cause)
}

// CannotReach is the error of a sidecar that is not called at all, since that would be in vain.
func CannotReach(address, cause string) error {
	return With(Unreachable, errors.New(cannotReach(address, cause)))
}

func explainFields(e *sidekeeper.Error) string {
	rules := make([]string, 0, len(e.Fields))
	for _, broken := range e.Fields {
		field := broken.Field
		if value, told := e.Metadata["value"]; told && field == e.Metadata["field"] {
			field += " is " + value
		}
		rules = append(rules, field+": "+broken.Rule)
	}
	return strings.Join(rules, "; ")
}

// transportCause takes away what gRPC wraps around the error of the system's call.
func transportCause(message string) string {
	for _, wrapping := range []string{"Error while dialing: ", "authentication handshake failed: "} {
		if _, cause, found := strings.Cut(message, wrapping); found {
			return strings.TrimSuffix(cause, `"`)
		}
	}
	if _, alert, found := strings.Cut(message, "remote error: tls: "); found {
		return "it has ended the TLS handshake: " + strings.TrimSuffix(alert, `"`)
	}
	for _, hungUp := range []string{"error reading server preface", "write tcp", "read tcp", "write unix", "read unix"} {
		if strings.Contains(message, hungUp) {
			return "what listens there does not answer as a gRPC server does"
		}
	}
	return message
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// The codes to exit with, besides 0 and those of a command that was run. Where they can, they mean what sysexits.h says.
const (
	exitFailed      = 1
	exitUsage       = 64
	exitUnreachable = 69 // the sidecar or the ensemble
	exitLost        = 70 // the lock was lost, and the command ended for it
	exitNotObtained = 75
	exitDenied      = 77
	exitNoCommand   = 127
	exitSignal      = 128 // and the signal's number
)

// An exitError ends the program with a code. Without a cause there is nothing to say.
type exitError struct {
	code  int
	cause error
}

func (e exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.cause.Error()
}

func (e exitError) Unwrap() error { return e.cause }

// usageError is for a program that was called in the wrong way.
func usageError(err error) error { return exitError{exitUsage, err} }

// exits is what each error ends the program with. The first match wins.
var exits = []struct {
	err  error
	code int
}{
	{sidekeeper.ErrLost, exitLost},
	{sidekeeper.ErrLockHeld, exitNotObtained},
	{sidekeeper.ErrWaitTimeout, exitNotObtained},
	{sidekeeper.ErrMemberExists, exitNotObtained},
	{sidekeeper.ErrPreconditionFailed, exitNotObtained},
	{sidekeeper.ErrLeaseLost, exitUnreachable}, // while waiting: the ensemble was away for too long
	{context.DeadlineExceeded, exitUnreachable},
}

// codeExits is what a status ends the program with whose reason does not.
var codeExits = map[codes.Code]int{
	codes.InvalidArgument:   exitUsage,
	codes.Aborted:           exitNotObtained, // before a grant: try again
	codes.Unavailable:       exitUnreachable,
	codes.DeadlineExceeded:  exitUnreachable,
	codes.ResourceExhausted: exitNotObtained,
	codes.PermissionDenied:  exitDenied,
	codes.Unauthenticated:   exitDenied,
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if e := (exitError{}); errors.As(err, &e) {
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
	return exitFailed
}

// explain says in one line what a person must know of err, which a sidecar at address may have caused.
func explain(err error, address string) string {
	if err == nil {
		return ""
	}
	if e := (exitError{}); errors.As(err, &e) && e.cause == nil {
		return ""
	}
	line := err.Error()
	if e := (*sidekeeper.Error)(nil); errors.As(err, &e) {
		line = strings.Replace(line, e.Error(), explainStatus(e, address), 1)
	}
	return strings.ReplaceAll(line, "\n", "; ")
}

func explainStatus(e *sidekeeper.Error, address string) string {
	switch {
	case len(e.Fields) > 0:
		return explainFields(e)
	case errors.Is(e, sidekeeper.ErrOperatorOnly):
		return e.Message + " (OPERATOR_ONLY): use the operators' socket, see --operator-address"
	case e.Reason != "":
		return fmt.Sprintf("%s (%s)", e.Message, e.Reason)
	case errors.Is(e, context.DeadlineExceeded):
		return fmt.Sprintf("the sidecar at %s does not answer in time", address)
	case e.Code == codes.Unavailable:
		return fmt.Sprintf("cannot reach the sidecar at %s: %s", address, transportCause(e.Message))
	default:
		return e.Error()
	}
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
	_, cause, found := strings.Cut(message, "Error while dialing: ")
	if !found {
		return message
	}
	return strings.TrimSuffix(cause, `"`)
}

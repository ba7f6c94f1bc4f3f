// Package expect is how tests of the API say what they expect: a value, an outcome in words, a line in the log.
package expect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// Patient bounds a test that would wait for ever, also where it gets little of a busy machine.
const Patient = 4 * time.Minute

// Must fails the test if there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same fails unless what a caller saw is what it should have seen.
func Same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s: got %q, want %q", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

// Outcome is an error as a caller sees it: "OK", or code and reason as in "Aborted LEASE_LOST".
func Outcome(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return "OK"
	}
	seen := status.Convert(err)
	words := []string{seen.Code().String()}
	for _, detail := range seen.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			words = append(words, detail.GetReason())
		case *errdetails.BadRequest:
			words = append(words, detail.GetFieldViolations()[0].GetField())
		}
	}
	return strings.Join(words, " ")
}

// Within is a context that ends with the test, or when it has taken too long.
func Within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), Patient, errors.New("the test takes too long"))
	t.Cleanup(cancel)
	return ctx
}

// Receive fails if nothing comes.
func Receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-Within(t).Done():
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// A Logbook keeps what is logged.
type Logbook struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// Write implements io.Writer.
func (l *Logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

// Text is all that was logged.
func (l *Logbook) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// Logger logs to the book, in full detail.
func (l *Logbook) Logger() *zap.Logger {
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(l), zapcore.DebugLevel))
}

package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A scene is a sidecar that serves, and stubs for it over TCP.
type scene struct {
	*Sidecar

	t          *testing.T
	connection *grpc.ClientConn
	locks      lockv1.LockServiceClient
	dev        devv1.DevServiceClient
}

func serve(t *testing.T, options Options) *scene {
	t.Helper()
	options.Listen = []string{"127.0.0.1:0"}
	if options.AnyAddress {
		options.Listen = []string{"0.0.0.0:0"}
	}
	sidecar, err := New(t.Context(), options)
	must(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- sidecar.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-served)
	})
	connection, err := grpc.NewClient(sidecar.Addresses()[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return &scene{sidecar, t, connection, lockv1.NewLockServiceClient(connection), devv1.NewDevServiceClient(connection)}
}

// context bounds a test that would wait for ever.
func (s *scene) context() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), 20*time.Second)
	s.t.Cleanup(cancel)
	return ctx
}

type acquiring struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[lockv1.AcquireResponse]
	token  int64
}

func (s *scene) acquire(name string) *acquiring {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := s.locks.Acquire(ctx, &lockv1.AcquireRequest{Name: name})
	must(s.t, err)
	return &acquiring{t: s.t, stream: stream}
}

// next is the next event or the end, in words: `granted`, `Aborted LEASE_LOST`.
func (a *acquiring) next() string {
	a.t.Helper()
	event, err := a.stream.Recv()
	if err != nil {
		return told(err)
	}
	a.token = max(a.token, event.GetGranted().GetFencingToken())
	name := event.ProtoReflect().WhichOneof(event.ProtoReflect().Descriptor().Oneofs().Get(0)).Name()
	return string(name)
}

// sees fails the test unless these come next, each perhaps more than once.
func (a *acquiring) sees(events ...string) {
	a.t.Helper()
	before := ""
	for _, want := range events {
		got := a.next()
		for got == before {
			got = a.next()
		}
		if got != want {
			a.t.Fatalf("%s instead of %s", got, want)
		}
		before = got
	}
}

func told(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return "OK"
	}
	seen := status.Convert(err)
	reason, _, _ := strings.Cut(seen.Message(), ":")
	return fmt.Sprint(seen.Code(), " ", reason)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package goclient

import (
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatal("what had to happen has not happened")
		panic("unreachable")
	}
}

// serveOn serves on a Unix socket until the test ends.
func serveOn(t *testing.T, server *grpc.Server, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
}

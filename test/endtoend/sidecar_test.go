package endtoend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// patient is how long anything may take that is about to happen.
const patient = 30 * time.Second

// A sidecar is a process of ours, and connections to it.
type sidecar struct {
	*process

	folder     string
	connection *grpc.ClientConn
	locks      lockv1.LockServiceClient
	leases     leasev1.LeaseServiceClient
	operators  lockv1.LockServiceClient // on the operators' listener
}

// A setup is how to start a sidecar.
type setup struct {
	program func() (string, error) // nil is ours
	servers []string
	tick    time.Duration
	timeout time.Duration
	flags   []string
}

// startSidecar returns when the sidecar reaches the ensemble.
func startSidecar(t *testing.T, with setup) *sidecar {
	t.Helper()
	s := launchSidecar(t, with)
	s.awaitReady(t)
	return s
}

// awaitReady returns when the sidecar reaches the ensemble.
func (s *sidecar) awaitReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	stream, err := healthv1.NewHealthClient(s.connection).Watch(ctx, &healthv1.HealthCheckRequest{Service: "sidekeeper.readiness"})
	must(t, err)
	for {
		health, err := stream.Recv()
		must(t, err)
		if health.GetStatus() == healthv1.HealthCheckResponse_SERVING {
			return
		}
	}
}

// launchSidecar returns when the sidecar listens.
func launchSidecar(t *testing.T, with setup) *sidecar {
	t.Helper()
	folder, err := os.MkdirTemp("", "sidecar-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	return launchSidecarIn(t, folder, with)
}

// launchSidecarIn has the sidecar's sockets and log in a folder that there may have been another's in.
func launchSidecarIn(t *testing.T, folder string, with setup) *sidecar {
	t.Helper()
	s := &sidecar{folder: folder}
	s.process = start(t, filepath.Join(folder, "log"), s.serving(t, with))
	s.connection = dial(t, s.address())
	s.locks = lockv1.NewLockServiceClient(s.connection)
	s.leases = leasev1.NewLeaseServiceClient(s.connection)
	s.operators = lockv1.NewLockServiceClient(dial(t, s.operatorAddress()))
	s.awaitLine(t, "listening on", patient)
	return s
}

// serving is how the sidecar is started.
func (s *sidecar) serving(t *testing.T, with setup) *exec.Cmd {
	t.Helper()
	if with.program == nil {
		with.program = sidekeeper
	}
	program, err := with.program()
	must(t, err)
	return exec.Command(program, append([]string{
		"serve",
		"--zookeeper=" + strings.Join(with.servers, ","),
		"--tick-time=" + with.tick.String(),
		"--session-timeout=" + with.timeout.String(),
		"--listen=" + s.address(),
		"--operator-listen=" + s.operatorAddress(),
		"--metrics-listen=" + s.metricsAddress(),
	}, with.flags...)...)
}

func (s *sidecar) address() string         { return "unix://" + filepath.Join(s.folder, "callers") }
func (s *sidecar) operatorAddress() string { return "unix://" + filepath.Join(s.folder, "operators") }
func (s *sidecar) metricsAddress() string  { return "unix://" + filepath.Join(s.folder, "metrics") }

// client is a client of the Go library, closed with the test.
func (s *sidecar) client(t *testing.T) *sidekeeperclient.Client {
	t.Helper()
	client, err := sidekeeperclient.Dial(s.address())
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithStatsHandler(arrivals{}))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// told is how a caller is told of an error: `Aborted LEASE_LOST`.
func told(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return codes.OK.String()
	}
	if told, is := errors.AsType[*sidekeeperclient.Error](err); is {
		return fmt.Sprint(told.Code, " ", told.Reason)
	}
	reason, _, named := strings.Cut(status.Convert(err).Message(), ":")
	if !named || strings.ContainsAny(reason, " abcdefghijklmnopqrstuvwxyz") {
		return status.Code(err).String()
	}
	return status.Code(err).String() + " " + reason
}

// expect fails the test unless a call ended as said.
func expect(t *testing.T, want string, err error) {
	t.Helper()
	if got := told(err); got != want {
		t.Errorf("%s (%v) instead of %s", got, err, want)
	}
}

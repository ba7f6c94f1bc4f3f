package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

// A piped sidecar writes its log to a pipe.
type piped struct {
	*served
	locks lockv1.LockServiceClient
	log   *os.File // where it can be read
}

func servePiped(t *testing.T, args ...string) *piped {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &piped{log: reader}
	p.served = serveWith(t, func(command *exec.Cmd) { command.Stderr = writer }, args...)
	writer.Close()
	t.Cleanup(func() { reader.Close() })
	connection, err := grpc.NewClient(p.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	p.locks = lockv1.NewLockServiceClient(connection)
	return p
}

// hold is a lock of its own for each call: a bare stream, which nothing but its sidecar ends.
func (p *piped) hold(ctx context.Context, name string) (stream lockv1.LockService_AcquireClient, id string, err error) {
	if stream, err = p.locks.Acquire(ctx, &lockv1.AcquireRequest{Name: name}); err != nil {
		return nil, "", err
	}
	for id == "" && err == nil {
		var said *lockv1.AcquireResponse
		said, err = stream.Recv()
		id = said.GetGranted().GetHoldId()
	}
	return stream, id, err
}

// holds is hold for what must succeed.
func (p *piped) holds(ctx context.Context, name string) (stream lockv1.LockService_AcquireClient, id string) {
	p.t.Helper()
	stream, id, err := p.hold(ctx, name)
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return stream, id
}

func (p *piped) releases(ctx context.Context, id string) error {
	_, err := p.locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: id})
	return err
}

// says has callers take and release locks, each of which is three lines of the two logs at least, and returns when there are so many.
func (p *piped) says(ctx context.Context, lines int) {
	p.t.Helper()
	const callers = 8
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			name := strings.Repeat("long/", 38) + string(rune('a'+caller))
			for range lines / 3 / callers {
				_, id, err := p.hold(ctx, name)
				if err == nil {
					err = p.releases(ctx, id)
				}
				if err != nil {
					p.t.Errorf("while the log has no reader: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

// The log of a sidecar has lost its reader. Locks are granted, released and lost in time, and other callers get them, all the same.
func TestALogWithoutAReaderConcernsNoLock(t *testing.T) {
	t.Parallel()
	memory := embedded.New(embedded.Options{Tick: time.Second})
	ensemble, err := embedded.Serve(memory, embedded.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	t.Cleanup(ensemble.Close)
	flags := []string{"--zookeeper=" + ensemble.Address(), "--tick-time=1s", "--session-timeout=6s", "--drain-timeout=0s"}
	unread, other := servePiped(t, append(flags, "--log-level=debug")...), servePiped(t, flags...)
	go io.Copy(io.Discard, other.log)
	ctx, cancel := context.WithTimeout(context.Background(), 6*patience)
	defer cancel()

	_, released := unread.holds(ctx, "released")
	lost, _ := unread.holds(ctx, "lost")
	unread.says(ctx, 3000)
	if err := unread.releases(ctx, released); err != nil {
		t.Errorf("release: %v", err)
	}
	other.holds(ctx, "released")
	unread.holds(ctx, "granted")

	ensemble.Suspend(time.Hour)
	defer ensemble.Suspend(0)
	for err == nil {
		_, err = lost.Recv()
	}
	if status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "LEASE_LOST") {
		t.Errorf("the end of a lock that is lost: %v", err)
	}

	told := make(chan string, 2)
	go func() {
		defer close(told)
		for lines := bufio.NewScanner(unread.log); lines.Scan(); {
			if line := lines.Text(); strings.Contains(line, "lines of the log are missing") || strings.Contains(line, `"event":"gap","lines":`) {
				told <- line
			}
		}
	}()
	if log, audit := receive(t, told), receive(t, told); log == "" || audit == "" {
		t.Errorf("when it is read again, nothing says that lines are missing: %q %q", log, audit)
	}
	unread.signal(syscall.SIGTERM)
	unread.ends()
}

// The reader of a sidecar's log leaves, as journald does when it is started again.
func TestTheReaderOfALogMayLeave(t *testing.T) {
	t.Parallel()
	_, address := memoryEnsemble(t)
	s := servePiped(t, "--zookeeper="+address, "--log-level=debug")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, id := s.holds(ctx, "held")
	s.log.Close()
	s.says(ctx, 48)
	if err := s.releases(ctx, id); err != nil {
		t.Errorf("release: %v", err)
	}
	s.signal(syscall.SIGTERM)
	if code := s.ends(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// What outlives its log's reader runs commands that do not: a pipeline within them ends as it does elsewhere.
func TestACommandUnderALockEndsWithSIGPIPE(t *testing.T) {
	t.Parallel()
	_, address := memoryEnsemble(t)
	s := serve(t, "--zookeeper="+address)
	for _, args := range [][]string{{"lock", "run"}, {"elect", "run"}} {
		p := start(t, s.address, append(args, "piped", "--", "sh", "-c", "kill -PIPE $$")...)
		p.want(t, 128+int(syscall.SIGPIPE))
	}
}

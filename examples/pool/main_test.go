package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// A process is a running pool, whose lines are read.
type process struct {
	t     *testing.T
	lines *bufio.Scanner
	stop  func()
}

func start(t *testing.T) *process {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	from, to := io.Pipe()
	over := make(chan error, 1)
	go func() {
		over <- run(ctx, to, []string{"queues", "nodes"})
		_ = to.Close()
	}()
	p := &process{t: t, lines: bufio.NewScanner(from), stop: stop}
	t.Cleanup(func() {
		stop()
		_, _ = io.Copy(io.Discard, from)
		<-over
	})
	return p
}

// says reads as many lines as are expected to begin so, among others.
func (p *process) says(beginning string, count int) {
	p.t.Helper()
	for count > 0 && p.lines.Scan() {
		if strings.HasPrefix(p.lines.Text(), beginning) {
			count--
		}
	}
	if count > 0 {
		p.t.Fatalf("%d lines that begin with %q are missing", count, beginning)
	}
}

func TestPoolsShareQueuesUnderNodeIDsOfTheirOwn(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	t.Setenv("SIDEKEEPER_ADDRESS", sidecar.Address())
	connection, err := grpc.NewClient(sidecar.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	_, err = assignmentv1.NewAssignmentServiceClient(connection).Define(t.Context(), &assignmentv1.DefineRequest{Set: "queues", Count: 4})
	if err != nil {
		t.Fatal(err)
	}
	client, err := sidekeeper.Dial(sidecar.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.CreateSemaphore(t.Context(), "nodes", 2); err != nil {
		t.Fatal(err)
	}
	first := start(t)
	first.says("node-0 takes queue ", 4)
	second := start(t)
	first.says("node-0 leaves queue ", 2)
	second.says("node-1 takes queue ", 2)
	first.stop()
	first.says("node-0 leaves queue ", 2)
	second.says("node-1 takes queue ", 2)
}

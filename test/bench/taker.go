package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

const (
	naiveNode    = "/bench/numbers"
	sequenceName = "numbers"
)

// prepareNumbers makes the node and the sequence that numbers are taken from, if they are missing.
func prepareNumbers(ctx context.Context, s *sidecar, addresses []string) error {
	opened, err := openDirect(ctx, addresses)
	if err != nil {
		return err
	}
	defer opened.close()
	for _, path := range []string{"/bench", naiveNode} {
		_, err := opened.(*directCaller).session.Create(path, make([]byte, 8), zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", path, err)
		}
	}
	connection, err := s.dial()
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = sequencev1.NewSequenceServiceClient(connection).Create(ctx, &sequencev1.CreateRequest{Name: sequenceName}, grpc.WaitForReady(true))
	if status.Code(err) == codes.AlreadyExists {
		return nil
	}
	return err
}

// A naiveTaker reads the number and sets the next one if nobody was faster, over a session of its own.
type naiveTaker struct{ *directCaller }

func openNaive(ctx context.Context, addresses []string) (taker, error) {
	opened, err := openDirect(ctx, addresses)
	if err != nil {
		return nil, err
	}
	return naiveTaker{opened.(*directCaller)}, nil
}

func (n naiveTaker) take(ctx context.Context) error {
	for ctx.Err() == nil {
		data, stat, err := n.session.Get(naiveNode)
		if err != nil {
			return err
		}
		next := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(data)+1)
		if _, err = n.session.Set(naiveNode, next, stat.Version); !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
	return context.Cause(ctx)
}

// A sequenceTaker calls Next through generated stubs, over a connection of its own.
type sequenceTaker struct {
	connection *grpc.ClientConn
	stub       sequencev1.SequenceServiceClient
	request    *sequencev1.NextRequest
}

func openSequence(s *sidecar, ordering sequencev1.Ordering) (taker, error) {
	connection, err := s.dial()
	if err != nil {
		return nil, err
	}
	return &sequenceTaker{
		connection: connection, stub: sequencev1.NewSequenceServiceClient(connection),
		request: &sequencev1.NextRequest{Name: sequenceName, Ordering: ordering},
	}, nil
}

func (s *sequenceTaker) take(ctx context.Context) error {
	_, err := s.stub.Next(ctx, s.request)
	return err
}

func (s *sequenceTaker) close() { s.connection.Close() }

// An echoTaker calls a server that only answers, over a connection of its own.
type echoTaker struct {
	connection *grpc.ClientConn
	stub       healthv1.HealthClient
}

func openEcho(socket string) (taker, error) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &echoTaker{connection: connection, stub: healthv1.NewHealthClient(connection)}, nil
}

func (e *echoTaker) take(ctx context.Context) error {
	_, err := e.stub.Check(ctx, &healthv1.HealthCheckRequest{Service: sequenceName})
	return err
}

func (e *echoTaker) close() { e.connection.Close() }

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

func withNames(options *stage.Options) { options.Names = true }

// hangNames has a sidecar's name server answer nothing for longer than leases last, while its connections to the ensemble are reset. Then the
// sidecar must serve soon.
func hangNames(ctx context.Context, s *scene) error {
	host := s.host()
	heal := s.fault(host.Target())
	host.Names.Hang()
	for over := time.Now().Add(s.expiry()); time.Now().Before(over); {
		s.eachWay(host, (*link.Link).Reset)
		if !s.pause(ctx, s.between(s.Timeout/8, s.Timeout/4)) {
			break
		}
	}
	host.Names.Answer()
	heal()
	return s.pass(ctx, host)
}

// pass has a caller wait at a barrier that is not set, again and again until it is let pass. A sidecar that serves does that at once.
func (s *scene) pass(ctx context.Context, host *stage.Host) error {
	connection, err := grpc.NewClient(host.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	op, name := int64(s.strikes+1), fmt.Sprint(s.Prefix, "/unset/", s.strikes)
	s.Stage.Note(history.Event{Kind: history.Awaiting, Op: op, Barrier: name, Sidecar: host.Number})
	for {
		err = wait(ctx, barrierv1.NewBarrierServiceClient(connection), name)
		if err == nil || !s.pause(ctx, 50*time.Millisecond) {
			break
		}
	}
	s.noteEnd(op, err)
	return nil
}

// wait waits at a barrier once.
func wait(ctx context.Context, barriers barrierv1.BarrierServiceClient, name string) error {
	stream, err := barriers.Wait(ctx, &barrierv1.WaitRequest{Name: name})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

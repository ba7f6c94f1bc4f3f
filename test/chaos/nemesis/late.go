package nemesis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// delayWrites has a follower carry out late what a sidecar has sent it. Meanwhile the sidecar asks again at another server, and what it has done
// there is undone.
func delayWrites(ctx context.Context, s *scene) error {
	leader, follower, err := s.roles(ctx)
	if err != nil {
		return err
	}
	host := s.host()
	defer s.fault(host.Target())()
	defer host.Heal()
	host.Pin(follower.ID())
	s.pause(ctx, settling)
	writing, err := s.changeBarriers(ctx, host)
	if err != nil {
		return err
	}
	s.pause(ctx, s.between(100*time.Millisecond, 300*time.Millisecond))
	s.Stage.Ensemble.CutPeers(follower.ID(), leader.ID(), link.Stall)
	s.pause(ctx, s.between(50*time.Millisecond, 200*time.Millisecond))
	leave(host, follower)
	writing.finish(s.Timeout / 2) // or the session that has sent it is over
	s.Stage.Ensemble.CutPeers(follower.ID(), leader.ID(), link.Pass)
	s.pause(ctx, settling)
	return s.whole(ctx)
}

// leave has a host lose the only server that it reaches, and reach the others.
func leave(host *stage.Host, left *ensemble.Server) {
	for i, way := range host.ToServers {
		if i+1 == left.ID() {
			way.Refuse()
			way.Reset()
		} else {
			way.Heal()
		}
	}
}

// barriers is how many callers there are that set a barrier and remove it over and over, each one of its own.
const barriers = 8

// A writing is such callers.
type writing struct {
	cancel context.CancelFunc
	enough chan struct{} // closed when they are to stop
	over   sync.WaitGroup
}

// changeBarriers begins to set and remove barriers at a sidecar.
func (s *scene) changeBarriers(ctx context.Context, host *stage.Host) (*writing, error) {
	connection, err := grpc.NewClient(host.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	w := &writing{enough: make(chan struct{})}
	ctx, w.cancel = context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range barriers {
		c := &changer{scene: s, host: host, client: barrierv1.NewBarrierServiceClient(connection)}
		c.name = fmt.Sprintf("%s/late/%d-%d", s.Prefix, s.strikes, i)
		c.op = int64(s.strikes*barriers+i+1) << 20
		all.Go(func() { c.run(ctx, w.enough) })
	}
	w.over.Go(func() {
		all.Wait()
		connection.Close()
	})
	return w, nil
}

// finish has the callers come to their end, which is their last change undone, or gives them up after a while.
func (w *writing) finish(patience time.Duration) {
	close(w.enough)
	late := time.AfterFunc(patience, w.cancel)
	w.over.Wait()
	late.Stop()
	w.cancel()
}

// A changer sets a barrier and removes it, over and over.
type changer struct {
	*scene

	host   *stage.Host
	client barrierv1.BarrierServiceClient
	name   string
	op     int64 // the newest
}

// run stops once it has made a change that it has begun after it was enough.
func (c *changer) run(ctx context.Context, enough <-chan struct{}) {
	for last := false; !last; {
		select {
		case <-enough:
			last = true
		default:
		}
		kind := history.Setting
		if c.op%2 == 1 {
			kind = history.Removing
		}
		if !c.change(ctx, kind) {
			return
		}
	}
}

// change notes what it asks for and what it is told.
func (c *changer) change(ctx context.Context, kind history.Kind) (done bool) {
	c.op++
	c.Stage.Note(history.Event{Kind: kind, Op: c.op, Barrier: c.name, Sidecar: c.host.Number})
	var err error
	if kind == history.Setting {
		_, err = c.client.Set(ctx, &barrierv1.SetRequest{Name: c.name})
	} else {
		_, err = c.client.Remove(ctx, &barrierv1.RemoveRequest{Name: c.name})
	}
	c.noteEnd(c.op, err)
	return err == nil
}

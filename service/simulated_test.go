package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// What is tested here is that streams end before the next grant on an ensemble of three whose servers die, freeze and are cut
// off: handlers, recipes and sessions as they are, in virtual time. Only gRPC's transport is left out.

const simulatedSeeds = 24

func TestAStreamEndsBeforeTheNextGrantWhateverFails(t *testing.T) {
	t.Parallel()
	grants, losses := 0, 0
	for seed := range uint64(simulatedSeeds) {
		bubble.Test(t, func(t *testing.T) {
			p := &play{T: t, dice: rand.New(rand.NewPCG(seed, 0)), seed: seed}
			p.run()
			grants, losses = grants+p.grants, losses+p.losses
		})
	}
	t.Logf("%d grants, %d of them lost", grants, losses)
	if grants < 5*simulatedSeeds || losses < simulatedSeeds/6 {
		t.Error("too little happens")
	}
}

// A play is one random course of events.
type play struct {
	*testing.T
	seed     uint64
	dice     *rand.Rand
	ensemble *simulation.Ensemble

	mu             sync.Mutex
	open           map[*simulatedStream]bool // streams that say the lock is held
	token          int64
	grants, losses int
}

type simulatedEnsemble struct{ *zookeeper.Client }

func (e simulatedEnsemble) Open(ctx context.Context, timeout time.Duration) (Session, error) {
	session, err := e.OpenPooled(ctx, timeout)
	if err != nil {
		return nil, err
	}
	return session, nil
}

func (p *play) run() {
	p.open = map[*simulatedStream]bool{}
	p.ensemble = simulation.New(simulation.Options{Seed: p.seed, Hosts: 2})
	defer p.ensemble.Close()
	p.ensemble.Await()
	over, end := context.WithCancel(context.Background())
	var callers, clients sync.WaitGroup
	for host := range 2 {
		services, client := p.sidecar(host)
		for range 3 {
			dice := rand.New(rand.NewPCG(p.dice.Uint64(), 1))
			callers.Go(func() { p.call(over, services, dice) })
		}
		clients.Go(func() {
			callers.Wait()
			if err := services.Stop(context.Background()); err != nil {
				p.Error(err)
			}
			client.Close()
		})
	}
	for range 10 {
		p.disturb()
	}
	p.ensemble.Heal()
	p.progress()
	end()
	clients.Wait()
	time.Sleep(30 * time.Second) // until what was left behind has expired
	if names := p.ensemble.Names("/locks/orders"); len(names) > 0 {
		p.Errorf("seed %d: left behind: %q", p.seed, names)
	}
}

func (p *play) sidecar(host int) (*Services, *zookeeper.Client) {
	began, timeout := time.Now(), []time.Duration{4 * time.Second, 8 * time.Second}[p.dice.IntN(2)]
	client, err := zookeeper.New(zookeeper.Config{
		Servers: p.ensemble.Addresses(), SessionTimeout: timeout, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Directories: []string{"/locks"},
		Dial: p.ensemble.Dialer(host), Clock: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		p.Fatal(err)
	}
	return New(Options{LockRoot: "/locks", SessionTimeout: timeout}, simulatedEnsemble{client}), client
}

// disturb has something fail for some time, not always until the next thing does.
func (p *play) disturb() {
	e, server, while := p.ensemble, p.dice.IntN(3), time.Duration(p.dice.Int64N(int64(14*time.Second)))
	switch p.dice.IntN(4) {
	case 0:
		e.Kill(server)
		time.AfterFunc(while, func() { e.Start(server) })
	case 1:
		e.Freeze(server)
		time.AfterFunc(while, func() { e.Thaw(server) })
	case 2:
		e.Isolate(server)
		time.AfterFunc(while, func() { e.Rejoin(server) })
	case 3:
		e.CutHost(p.dice.IntN(2), server, true, p.dice.IntN(2) == 0)
		time.AfterFunc(while, func() { e.Heal() })
	}
	time.Sleep(time.Duration(p.dice.Int64N(int64(12 * time.Second))))
}

// progress waits until the lock is granted again.
func (p *play) progress() {
	before := p.granted()
	time.Sleep(time.Minute)
	if p.granted() == before {
		p.Errorf("seed %d: nobody is granted the lock in a minute after everything was healed", p.seed)
	}
}

func (p *play) granted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grants
}

// call acquires again and again.
func (p *play) call(over context.Context, services *Services, dice *rand.Rand) {
	handler := &lockService{services: services, directory: services.lockDirectory()}
	for over.Err() == nil {
		ctx, cancel := context.WithCancel(caller.StatsHandler{}.TagRPC(over, nil))
		stream := &simulatedStream{play: p, ctx: ctx, cancel: cancel, patience: time.Duration(dice.Int64N(int64(9 * time.Second)))}
		err := handler.Acquire(&lockv1.AcquireRequest{Name: "orders"}, stream)
		p.ended(stream, err)
		caller.StatsHandler{}.HandleRPC(ctx, &stats.End{})
		cancel()
		time.Sleep(time.Duration(dice.Int64N(int64(time.Second))))
	}
}

// A simulatedStream is an Acquire stream whose caller leaves some time after it was granted the lock.
type simulatedStream struct {
	grpc.ServerStream
	*play
	ctx      context.Context
	cancel   context.CancelFunc
	patience time.Duration
}

func (s *simulatedStream) Context() context.Context     { return s.ctx }
func (s *simulatedStream) SendHeader(metadata.MD) error { return nil }
func (s *simulatedStream) Send(m *lockv1.AcquireResponse) error {
	if granted := m.GetGranted(); granted != nil {
		s.enter(s, granted.GetFencingToken())
	}
	return nil
}

// enter notes that a stream says the lock is held: no other may.
func (p *play) enter(s *simulatedStream, token int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) > 0 {
		p.Errorf("seed %d: granted while another stream says the lock is held", p.seed)
	}
	if token <= p.token {
		p.Errorf("seed %d: token %d after %d", p.seed, token, p.token)
	}
	p.open[s], p.token = true, token
	p.grants++
	time.AfterFunc(s.patience, func() {
		p.mu.Lock()
		delete(p.open, s)
		p.mu.Unlock()
		s.cancel()
	})
}

// ended notes how a stream has ended. One that held and was not left by its caller must say that the lease is lost.
func (p *play) ended(s *simulatedStream, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := p.open[s]
	delete(p.open, s)
	if !open || s.ctx.Err() != nil {
		return
	}
	p.losses++
	answer, reason := StatusOf(err)
	if err == nil || answer.Code() != codes.Aborted || reason != "LEASE_LOST" {
		p.Errorf("seed %d: a hold ended with %s", p.seed, fmt.Sprint(err))
	}
}

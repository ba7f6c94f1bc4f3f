package service_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/traces"
)

// What is tested here is that streams end before the next grant on an ensemble of three whose servers die, freeze and are cut
// off: handlers, recipes and sessions as they are, in virtual time. Only gRPC's transport is left out.

var (
	firstSeed      = flag.Uint64("seed", 0, "the first of the random courses on a simulated ensemble")
	simulatedSeeds = flag.Uint64("seeds", 24, "how many random courses on a simulated ensemble to run")
	recorded       = flag.String("traces", "", "the folder into which each of them is written as a trace; nothing else may run beside them")
)

func TestAStreamEndsBeforeTheNextGrantWhateverFails(t *testing.T) {
	t.Parallel()
	grants, shared, losses := 0, 0, 0
	for seed := *firstSeed; seed < *firstSeed+*simulatedSeeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := simulate(t, simulation.Options{Seed: seed, Hosts: 2}, func(p *play) []act { return []act{p.call, p.call, p.lease, p.revoke} })
			grants, shared, losses = grants+p.grants, shared+p.shared, losses+p.losses
		})
	}
	t.Logf("%d grants, %d of them beside a reader's, %d of them lost", grants, shared, losses)
	if *recorded == "" && (grants < 5*int(*simulatedSeeds) || shared < int(*simulatedSeeds) || losses < int(*simulatedSeeds)/6) {
		t.Error("too little happens")
	}
}

// An act is what goes on at a host until the course is over.
type act func(over context.Context, host *simulatedHost, dice *rand.Rand)

// simulate runs one random course, in which these acts go on at each host.
func simulate(t *testing.T, options simulation.Options, acts func(*play) []act) (p *play) {
	t.Helper()
	defer record(t, &options)()
	bubble.Test(t, func(t *testing.T) {
		p = &play{T: t, dice: rand.New(rand.NewPCG(options.Seed, 0)), seed: options.Seed}
		p.run(options, acts(p)...)
	})
	return p
}

// record has what is done written into a file, if that was asked for.
func record(t *testing.T, options *simulation.Options) (keep func()) {
	t.Helper()
	if *recorded == "" {
		return func() {}
	}
	recorder := traces.NewRecorder()
	options.Committed = recorder.Change
	stop := trace.Listen(recorder.Step)
	return func() {
		stop()
		if err := recorder.Write(filepath.Join(*recorded, fmt.Sprintf("service-%04d.jsonl", options.Seed))); err != nil {
			t.Error(err)
		}
	}
}

// A play is one random course of events.
type play struct {
	*testing.T
	seed     uint64
	dice     *rand.Rand
	ensemble *simulation.Ensemble
	hosts    [2]simulatedHost
	healed   atomic.Bool

	mu                     sync.Mutex
	open                   map[*simulatedStream]bool // streams that say the lock is held
	token, reader          int64                     // the largest of those that exclude each other, and of readers
	grants, shared, losses int
}

type simulatedEnsemble struct {
	*zookeeper.Client
	from *simulatedHost
}

func (e simulatedEnsemble) Open(ctx context.Context, timeout time.Duration) (service.Session, error) {
	session, err := e.OpenPooled(ctx, timeout)
	if err != nil {
		return nil, err
	}
	e.from.sessions.Store(session.ID(), true)
	return session, nil
}

func (p *play) run(options simulation.Options, acts ...act) {
	p.open = map[*simulatedStream]bool{}
	p.suspendBeforeAnswers(&options)
	p.ensemble = simulation.New(options)
	defer p.ensemble.Close()
	p.ensemble.Await()
	over, end := context.WithCancel(context.Background())
	var callers, sidecars sync.WaitGroup
	for number := range p.hosts {
		host := p.host(number)
		for _, act := range acts {
			dice := rand.New(rand.NewPCG(p.dice.Uint64(), 1))
			callers.Go(func() { act(over, host, dice) })
		}
	}
	for range 10 {
		p.disturb(over)
	}
	p.healed.Store(true)
	p.ensemble.Heal()
	p.progress()
	end()
	callers.Wait()
	for number := range p.hosts {
		sidecars.Go(func() { p.hosts[number].stop(0) })
	}
	sidecars.Wait()
	time.Sleep(30 * time.Second) // until what was left behind has expired
	if names := p.ensemble.Names("/locks/orders"); len(names) > 0 {
		p.Errorf("seed %d: left behind: %q", p.seed, names)
	}
}

// suspendBeforeAnswers has a machine be suspended now and then, for as long as a session lasts, before it hears that a place was made there to
// which nobody is ahead; until everything is healed.
func (p *play) suspendBeforeAnswers(options *simulation.Options) {
	committed, dice, standing := options.Committed, rand.New(rand.NewPCG(p.seed, 2)), 0
	options.Committed = func(change simulation.Change) {
		if committed != nil {
			committed(change)
		}
		standing += len(change.Made) - len(change.Gone)
		if len(change.Made) > 0 && standing == 1 && !p.healed.Load() && dice.IntN(4) == 0 {
			for i := range p.hosts {
				if _, its := p.hosts[i].sessions.Load(change.Session); its {
					p.hosts[i].asleep.Add(int64(p.hosts[i].timeout))
				}
			}
		}
	}
}

// A simulatedHost runs a sidecar, one after the other.
type simulatedHost struct {
	*play
	number   int
	timeout  time.Duration
	sessions sync.Map     // that were opened from here
	asleep   atomic.Int64 // for how long it was suspended, which its clock has counted and its timers have not

	sidecar atomic.Pointer[simulatedSidecar]
}

type simulatedSidecar struct {
	*service.Services
	handlers
	client *zookeeper.Client
}

// Handlers are services of a sidecar, called as the transport calls them.
type handlers struct {
	locks  lockv1.LockServiceServer
	leases leasev1.LeaseServiceServer
}

// RegisterService implements grpc.ServiceRegistrar.
func (h *handlers) RegisterService(_ *grpc.ServiceDesc, handler any) {
	switch handler := handler.(type) {
	case lockv1.LockServiceServer:
		h.locks = handler
	case leasev1.LeaseServiceServer:
		h.leases = handler
	}
}

func (p *play) host(number int) *simulatedHost {
	host := &p.hosts[number]
	host.play, host.number, host.timeout = p, number, []time.Duration{4 * time.Second, 8 * time.Second}[p.dice.IntN(2)]
	host.start()
	return host
}

func (h *simulatedHost) start() {
	began := time.Now()
	client, err := zookeeper.New(zookeeper.Config{
		Servers: h.ensemble.Addresses(), SessionTimeout: h.timeout, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Directories: []string{"/locks"}, Sleep: true,
		Dial: h.ensemble.Dialer(h.number), Clock: func() time.Duration { return time.Since(began) + time.Duration(h.asleep.Load()) },
	})
	if err != nil {
		h.Fatal(err)
	}
	started := &simulatedSidecar{
		Services: service.New(service.Options{LockRoot: "/locks", SessionTimeout: h.timeout}, simulatedEnsemble{client, h}), client: client,
	}
	started.Register(&started.handlers)
	h.sidecar.Store(started)
}

func (h *simulatedHost) stop(patience time.Duration) {
	stopped := h.sidecar.Load()
	if err := stopped.Drain(context.Background(), patience); err != nil {
		h.Error(err)
	}
	stopped.client.Close()
}

// disturb has something fail for some time, not always until the next thing does.
func (p *play) disturb(over context.Context) {
	e, server, while := p.ensemble, p.dice.IntN(3), time.Duration(p.dice.Int64N(int64(14*time.Second)))
	switch p.dice.IntN(7) {
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
	case 4:
		p.hosts[p.dice.IntN(2)].asleep.Add(int64(while))
	case 5, 6:
		host := &p.hosts[p.dice.IntN(2)]
		if p.dice.IntN(2) == 0 {
			host.force(over, while/16)
		}
		host.stop(while / 4 * time.Duration(p.dice.IntN(2)))
		host.start()
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

// from is the context of a caller, over a connection of its own.
func from(ctx context.Context) context.Context {
	from := caller.OutOfSight()
	from.Identity = "caller"
	return peer.NewContext(ctx, &peer.Peer{AuthInfo: from})
}

// call acquires again and again.
func (p *play) call(over context.Context, host *simulatedHost, dice *rand.Rand) {
	over = from(over)
	for over.Err() == nil {
		p.acquire(over, host.sidecar.Load(), standing{}, dice)
	}
}

// acquire acquires once.
func (p *play) acquire(over context.Context, sidecar *simulatedSidecar, on standing, dice *rand.Rand) {
	ctx, cancel := context.WithCancel(caller.StatsHandler{}.TagRPC(over, nil))
	defer cancel()
	stream := &simulatedStream{
		play: p, ctx: ctx, cancel: cancel, sidecar: sidecar, patience: time.Duration(dice.Int64N(int64(9 * time.Second))),
		asks: time.Duration(dice.Int64N(int64(5 * time.Second))), hears: dice.IntN(3) > 0, ended: make(chan struct{}),
		mode: p.mode(dice), on: on,
	}
	switch dice.IntN(8) {
	case 0: // it does not wait for long
		time.AfterFunc(stream.patience, cancel)
	case 1: // perhaps not even until its place is made
		time.AfterFunc(stream.patience/1000, cancel)
	}
	err := sidecar.locks.Acquire(&lockv1.AcquireRequest{Name: "orders", LeaseId: on.lease, Mode: stream.mode}, stream)
	p.ends(stream, err)
	caller.StatsHandler{}.HandleRPC(ctx, &stats.End{})
	cancel()
	stream.asking.Wait()
	select {
	case <-over.Done():
	case <-time.After(time.Duration(dice.Int64N(int64(time.Second)))):
	}
}

// mode is how a caller wants the lock: in every other course readers share it.
func (p *play) mode(dice *rand.Rand) holdv1.Mode {
	switch {
	case p.seed%2 == 0:
		return holdv1.Mode_MODE_EXCLUSIVE
	case dice.IntN(3) == 0:
		return holdv1.Mode_MODE_WRITE
	}
	return holdv1.Mode_MODE_READ
}

// lease opens a lease again and again, and acquires on it for some time.
func (p *play) lease(over context.Context, host *simulatedHost, dice *rand.Rand) {
	over = from(over)
	for over.Err() == nil {
		sidecar := host.sidecar.Load()
		ctx, cancel := context.WithCancel(caller.StatsHandler{}.TagRPC(over, nil))
		stream := &ringStream[*leasev1.OpenResponse]{ctx: ctx, events: make(chan *leasev1.OpenResponse, 1000)}
		var using sync.WaitGroup
		using.Go(func() {
			defer cancel()
			select {
			case <-ctx.Done():
			case event := <-stream.events:
				id := event.GetOpened().GetLeaseId()
				on := standing{left: ctx, lease: id, session: service.SessionOf(ctx, sidecar.Services, id)}
				lasting, stop := context.WithTimeout(ctx, time.Duration(dice.Int64N(int64(40*time.Second))))
				defer stop()
				for lasting.Err() == nil {
					p.acquire(lasting, sidecar, on, dice)
					_, _ = sidecar.leases.Check(ctx, &leasev1.CheckRequest{LeaseId: id}) // says if it is lost
					if dice.IntN(4) == 0 {
						time.Sleep(time.Duration(dice.Int64N(int64(3 * host.timeout)))) // so that it may sleep
					}
				}
			}
		})
		_ = sidecar.leases.Open(&leasev1.OpenRequest{}, stream) // the same
		cancel()
		caller.StatsHandler{}.HandleRPC(ctx, &stats.End{})
		using.Wait()
		time.Sleep(time.Duration(dice.Int64N(int64(time.Second))))
	}
}

// revoke has whoever holds end by force, once in a while.
func (p *play) revoke(over context.Context, host *simulatedHost, dice *rand.Rand) {
	for over.Err() == nil {
		host.force(over, time.Duration(dice.Int64N(int64(2*time.Second))))
		select {
		case <-over.Done():
		case <-time.After(time.Duration(dice.Int64N(int64(30 * time.Second)))):
		}
	}
}

// force has whoever holds end after this grace. It may fail, as much else does.
func (h *simulatedHost) force(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(caller.Operating(ctx), 5*time.Second)
	defer cancel()
	_, _ = h.sidecar.Load().locks.Revoke(ctx, &lockv1.RevokeRequest{Name: "orders", Grace: durationpb.New(grace)})
}

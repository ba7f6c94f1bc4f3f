package endtoend

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/proxy"
)

// quiet is how long each holder says nothing of its own accord: longer than any proxy lets pass.
const quiet = 2*proxy.Idle + 2*time.Second

// What stands between callers and a sidecar in another pod cuts streams that are silent. What is held with a keepalive outlives that, and those
// who wait do not notice.
func TestWhatIsHeldThroughAProxyThatCutsSilentStreams(t *testing.T) {
	e := ensembleOf(t, quickTick)
	flags := []string{"--heartbeat=250ms", "--listen=127.0.0.1:0"}
	s := startSidecar(t, setup{servers: e.ClientAddresses(), tick: quickTick, timeout: 4 * time.Second, flags: flags})
	address, _ := s.awaitLine(t, "listening on 127", patient)
	address = "127" + address
	nginx, envoy, balancer := proxy.Start(t, proxy.Nginx, address), proxy.Start(t, proxy.Envoy, address), newBalancer(t, address)
	for name, through := range map[string]proxied{
		"nginx": {address: nginx.Address, restart: nginx.Restart}, "Envoy": {address: envoy.Address, restart: envoy.Restart},
		"a balancer of connections": {address: balancer.Addr().String(), restart: balancer.cutAll},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			through.T, through.sidecar = t, s
			through.test()
		})
	}
}

// A proxied sidecar is one that is called through a proxy.
type proxied struct {
	*testing.T

	address string
	restart func()
	sidecar *sidecar
}

func (p proxied) test() {
	var all sync.WaitGroup
	for _, one := range []func(){p.isCut, p.isKept, p.clients, p.command, p.watch} {
		all.Go(one)
	}
	all.Wait()
	p.waiterAsksAgain()
}

func (p proxied) lock(of string) string { return filepath.Base(p.Name()) + "." + of }

// isCut shows that the proxy cuts: a lock that is held without a keepalive.
func (p proxied) isCut() {
	stream, err := lockv1.NewLockServiceClient(dial(p.T, p.address)).Acquire(p.Context(), &lockv1.AcquireRequest{Name: p.lock("cut")})
	began := time.Now()
	for err == nil {
		_, err = stream.Recv()
	}
	if took := time.Since(began); took < proxy.Idle-time.Second || took > patient {
		p.Errorf("a silent stream ended after %v: %v", took, err)
	}
}

// isKept holds a lock by stubs for longer than that.
func (p proxied) isKept() {
	ctx, cancel := p.beyondSilence()
	defer cancel()
	request := &lockv1.AcquireRequest{Name: p.lock("kept"), Keepalive: durationpb.New(time.Second)}
	stream, err := lockv1.NewLockServiceClient(dial(p.T, p.address)).Acquire(ctx, request)
	granted, keepalives := false, 0
	for err == nil {
		var event *lockv1.AcquireResponse
		if event, err = stream.Recv(); err == nil {
			granted = granted || event.GetGranted() != nil
			if event.GetKeepalive() != nil {
				keepalives++
			}
		}
	}
	if status.Code(err) != codes.Canceled || ctx.Err() == nil || !granted || keepalives < 4 {
		p.Errorf("granted: %v, with %d keepalives, then %v", granted, keepalives, err)
	}
}

// beyondSilence ends when any proxy would have cut what is silent. It is no deadline: proxies know deadlines, and may reset a stream when one
// passes.
func (p proxied) beyondSilence() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(p.Context())
	time.AfterFunc(quiet, cancel)
	return ctx, cancel
}

func (p proxied) dial() *sidekeeperclient.Client {
	client, err := sidekeeperclient.Dial(p.address)
	if err != nil {
		panic(err) // of the address alone
	}
	p.Cleanup(func() {
		if err := client.Close(); err != nil {
			p.Error(err)
		}
	})
	return client
}

// clients hold and wait through the Go client, with a lease and without.
func (p proxied) clients() {
	holder, waiter := p.dial(), p.dial()
	lock, err := holder.Acquire(p.Context(), p.lock("client"), sidekeeperclient.LockOptions{})
	if err != nil {
		p.Error(err)
		return
	}
	leader, err := holder.Campaign(p.Context(), p.lock("election"), sidekeeperclient.CampaignOptions{Candidate: "first"})
	if err != nil {
		p.Error(err)
		return
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		if _, err := waiter.Acquire(p.Context(), p.lock("client"), sidekeeperclient.LockOptions{Wait: new(time.Minute)}); err != nil {
			p.Error("who waits for a lock: ", err)
		}
	})
	waiting.Go(func() {
		options := sidekeeperclient.CampaignOptions{Candidate: "second", Wait: new(time.Minute)}
		if _, err := waiter.Campaign(p.Context(), p.lock("election"), options); err != nil {
			p.Error("who waits to lead: ", err)
		}
	})
	select {
	case <-lock.Done():
		p.Error("the lock ended: ", lock.Err())
	case <-leader.Done():
		p.Error("leadership ended: ", leader.Err())
	case <-time.After(quiet):
	}
	if err := lock.Release(p.Context()); err != nil {
		p.Error(err)
	}
	if err := leader.Release(p.Context()); err != nil {
		p.Error(err)
	}
}

// command runs one under a lock, and another that waits for it.
func (p proxied) command() {
	program, err := sidekeeper()
	if err != nil {
		p.Error(err)
		return
	}
	run := func(argv ...string) {
		argv = append([]string{"--address", p.address, "lock", "run", p.lock("command"), "--wait", "1m", "--"}, argv...)
		if said, err := exec.CommandContext(p.Context(), program, argv...).CombinedOutput(); err != nil {
			p.Errorf("lock run: %v\n%s", err, said)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { run("sleep", "12") })
	both.Go(func() { run("sleep", "12") })
	both.Wait()
}

// watch watches a lock that does not change.
func (p proxied) watch() {
	ctx, cancel := p.beyondSilence()
	defer cancel()
	for _, err := range p.dial().Watch(ctx, p.lock("watched")) {
		if err != nil {
			if ctx.Err() == nil {
				p.Error("a watch ended: ", err)
			}
			return
		}
	}
}

// waiterAsksAgain has the proxy restarted while a caller waits behind it.
func (p proxied) waiterAsksAgain() {
	held, err := p.sidecar.client(p.T).Acquire(p.Context(), p.lock("restart"), sidekeeperclient.LockOptions{})
	must(p.T, err)
	queued := make(chan struct{}, 16)
	waited := make(chan error, 1)
	go func() {
		_, err := p.dial().Acquire(p.Context(), p.lock("restart"), sidekeeperclient.LockOptions{
			Wait: new(time.Minute), OnQueued: func(sidekeeperclient.Queued) { queued <- struct{}{} },
		})
		waited <- err
	}()
	<-queued
	p.restart()
	select {
	case <-queued: // anew
	case err := <-waited:
		p.Fatal("who waits: ", err)
	case <-time.After(patient):
		p.Fatal("nobody waits any more")
	}
	must(p.T, held.Release(p.Context()))
	must(p.T, <-waited)
}

// A balancer passes connections on, and closes those over which nothing has come for so long.
type balancer struct {
	net.Listener

	mu   sync.Mutex
	open map[net.Conn]bool
}

func newBalancer(t *testing.T, to string) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	b := &balancer{Listener: listener, open: map[net.Conn]bool{}}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			sidecar, err := net.Dial("tcp", to)
			if err != nil {
				caller.Close()
				continue
			}
			b.add(caller, sidecar)
			pass := func(from, to net.Conn) {
				defer from.Close()
				defer to.Close()
				buffer := make([]byte, 32<<10)
				for {
					idle := time.Now().Add(proxy.Idle) // of both ways
					from.SetReadDeadline(idle)
					to.SetReadDeadline(idle)
					count, err := from.Read(buffer)
					if _, failed := to.Write(buffer[:count]); err != nil || failed != nil {
						return
					}
				}
			}
			passing.Go(func() { pass(caller, sidecar) })
			passing.Go(func() { pass(sidecar, caller) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		b.cutAll()
		passing.Wait()
	})
	return b
}

func (b *balancer) add(all ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, connection := range all {
		b.open[connection] = true
	}
}

// cutAll closes all connections.
func (b *balancer) cutAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for connection := range b.open {
		connection.Close()
	}
	clear(b.open)
}

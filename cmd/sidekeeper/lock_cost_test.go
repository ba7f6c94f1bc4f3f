package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// What a lock may cost, counted, so that nothing else that the machine does changes it, as long as it takes seconds: these tests run alone.
// Figures of time are for `make bench`.
const (
	pairsCounted  = 400
	cyclesCounted = 400
	leasesCounted = 100

	window = 1 << 20
)

// A bound of a count for each lock pair or cycle. Where it is above the goal it is what was counted when it was set, rounded up: lower it
// with each step that is made.
type bound struct{ most, goal float64 }

// With the race detector there are 4 to 8 % more allocations than without.
type costBounds struct{ requests, allocations, goroutines, writes bound }

var (
	cycleBound = bound{most: 4.2, goal: 4.1}
	bareBounds = costBounds{requests: bound{3.05, 3.05}, allocations: bound{290, 250}, goroutines: bound{3.2, 2}, writes: bound{10, 6}}
	// Over one stream for all of a lease.
	streamBounds = costBounds{requests: bound{3.05, 3.05}, allocations: bound{120, 110}, goroutines: bound{0.05, 0.05}, writes: bound{8, 4}}

	// Of a lease with locks that stand on its stream, with the two of the stream's handler.
	carriedBound = bound{most: 5.05, goal: 5}

	// One more says on the ensemble what the lease waits for.
	waitingBound = bound{most: 6.05, goal: 6}

	// Of a lease on which nothing stands.
	goroutineBound = bound{most: 4.05, goal: 3}
	stackBound     = bound{most: map[bool]float64{false: 22, true: 44}[raced], goal: 20}
)

// batches are counted until one is within the bounds, since a heartbeat or a flush of the runtime's counts may fall into any.
const batches = 5

func (b bound) holds(counted float64) bool { return counted <= b.most }

func (b bound) check(t *testing.T, what string, counted float64) {
	t.Helper()
	t.Logf("%.2f %s, of at most %g; the goal is %g", counted, what, b.most, b.goal)
	if !b.holds(counted) {
		t.Errorf("%.2f %s, which is more than %g", counted, what, b.most)
	}
}

// A countedSidecar is a sidecar whose process tells what it has made, with stubs for it, and an ensemble whose requests are counted.
type countedSidecar struct {
	link       *link.Link
	ask        io.Writer
	answers    *json.Decoder
	connection *grpc.ClientConn
	locks      lockv1.LockServiceClient
}

func TestALockPairCostsNoMoreThanItDid(t *testing.T) {
	s := startCounted(t)
	lease := s.lease(t)
	s.costs(t, bareBounds, func() { s.pair(t, lease, "alone") })
}

func TestALockPairOverTheStreamOfItsLeaseCostsNoMoreThanItDid(t *testing.T) {
	s := startCounted(t)
	pair := s.stream(t)
	s.costs(t, streamBounds, func() { pair("alone") })
}

// costs counts what pairs cost.
func (s *countedSidecar) costs(t *testing.T, bounds costBounds, pair func()) {
	t.Helper()
	pairs := func(count int) {
		for range count {
			pair()
		}
	}
	pairs(pairsCounted / 10) // so that directories and buffers are there
	var each cost
	var asked map[link.Opcode]int
	for range batches {
		each, asked = s.cost(t, func() { pairs(pairsCounted) }, pairsCounted)
		if each.requests = timeless(asked) / pairsCounted; bounds.hold(each) {
			break
		}
	}
	bounds.check(t, each)
}

// A cost is what one pair or one join has cost.
type cost struct{ requests, allocations, goroutines, writes float64 }

// cost counts what each of so many has cost, and what the ensemble was asked for all of them.
func (s *countedSidecar) cost(t *testing.T, do func(), count float64) (each cost, asked map[link.Opcode]int) {
	t.Helper()
	before := s.counts(t)
	s.link.ResetRequests()
	do()
	after := s.counts(t)
	return cost{
		allocations: float64(after.Allocations-before.Allocations) / count,
		goroutines:  float64(after.Goroutines-before.Goroutines) / count,
		writes:      float64(after.Writes-before.Writes) / count,
	}, s.link.ResetRequests()
}

func (b costBounds) hold(each cost) bool {
	return b.requests.holds(each.requests) && b.allocations.holds(each.allocations) &&
		b.goroutines.holds(each.goroutines) && b.writes.holds(each.writes)
}

func (b costBounds) check(t *testing.T, each cost) {
	t.Helper()
	b.requests.check(t, "requests of the ensemble", each.requests)
	b.allocations.check(t, "allocations", each.allocations)
	b.goroutines.check(t, "goroutines made", each.goroutines)
	b.writes.check(t, "calls of write(2)", each.writes)
}

func TestALockThatChangesHandsCostsNoMoreThanItDid(t *testing.T) {
	const callers = 17
	s := startCounted(t)
	var all sync.WaitGroup
	var begun atomic.Int64
	leases := make([]string, callers)
	for i := range leases {
		leases[i] = s.lease(t)
	}
	s.pair(t, leases[0], "contended") // which makes the directory
	var requests float64
	for range batches {
		s.link.ResetRequests()
		begun.Store(0)
		for _, lease := range leases {
			all.Go(func() {
				for begun.Add(1) <= cyclesCounted {
					s.pair(t, lease, "contended")
				}
			})
		}
		all.Wait()
		if requests = s.requests() / cyclesCounted; cycleBound.holds(requests) {
			break
		}
	}
	cycleBound.check(t, "requests of the ensemble", requests)
}

// looks are taken, a second apart, until one is within the bounds: what sends messages rests for a second, and each waiter reads its
// directory again from time to time. On a busy machine several do at once.
const looks = 30

// A lock that is held or waited for over its lease's stream is something that is known, and nothing that runs.
func TestLocksOverTheStreamOfTheirLeaseCostNoGoroutine(t *testing.T) {
	const leases, locks = 5, 100 // which is fewer streams than one connection may have
	s := startCounted(t)
	s.carried(t)
	before := s.counts(t)
	count := func(what string, bound bound) {
		t.Helper()
		var goroutines float64
		for range looks {
			<-time.After(time.Second)
			if goroutines = float64(s.counts(t).Running-before.Running) / leases; bound.holds(goroutines) {
				break
			}
		}
		bound.check(t, "goroutines of a lease "+what, goroutines)
	}
	var carried []*carried
	for lease := range leases {
		c := s.carried(t)
		carried = append(carried, c)
		for lock := range locks {
			c.acquire(fmt.Sprintf("%d/%d", lease, lock))
		}
	}
	count("with 100 locks", carriedBound)
	for _, c := range carried[1:] {
		for lock := range locks {
			c.waitFor(fmt.Sprint("0/", lock))
		}
	}
	count("with 100 locks that waits for 100 more", waitingBound)
}

// What stands on a goroutine's stack beyond 8 KiB, or 4, doubles it, for as long as the lease is open.
func TestALeaseCostsNoMoreThanItDid(t *testing.T) {
	s := startCounted(t)
	s.lease(t)
	before := s.counts(t)
	for range leasesCounted {
		s.lease(t)
	}
	var goroutines, stacks float64
	for range batches { // since what sends the last messages may not be gone yet
		after := s.counts(t)
		goroutines = float64(after.Running-before.Running) / leasesCounted
		stacks = float64(after.Stacks-before.Stacks) / leasesCounted / 1024
		if goroutineBound.holds(goroutines) && stackBound.holds(stacks) {
			break
		}
		<-time.After(time.Second)
	}
	goroutineBound.check(t, "goroutines", goroutines)
	stackBound.check(t, "KiB of stacks", stacks)
}

// counts are of the sidecar's process, since it has begun, and of what is there after a collection of garbage.
type counts struct{ Allocations, Goroutines, Running, Stacks, Writes uint64 }

// writes is how often the process has called write(2) so far; 0 where no kernel counts that.
func writes() (count uint64) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "syscw: ")
	_, _ = fmt.Sscan(after, &count)
	return count
}

// counted is the program with another thing that it does: for each line of its input it writes its counts. It ends with its input.
func counted(arguments []string) int {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		made := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			var memory runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&memory)
			metrics.Read(made)
			fmt.Fprintf(os.Stdout, `{"allocations": %d, "goroutines": %d, "running": %d, "stacks": %d, "writes": %d}`+"\n",
				memory.Mallocs, made[0].Value.Uint64(), runtime.NumGoroutine(), memory.StackInuse, writes())
		}
	}()
	return run(ctx, arguments, nil, io.Discard, os.Stderr)
}

func startCounted(t *testing.T) *countedSidecar {
	t.Helper()
	_, ensemble := memoryEnsemble(t)
	way, err := link.New(link.Options{Target: ensemble, ZooKeeper: true})
	mustCount(t, err)
	t.Cleanup(way.Close)
	folder := t.TempDir()
	address := "unix://" + filepath.Join(folder, "socket")
	command := exec.Command(os.Args[0], "serve", "--listen="+address, "--operator-listen=", "--zookeeper="+way.Address())
	command.Env = append(os.Environ(), role+"=counted")
	log, err := os.Create(filepath.Join(folder, "log"))
	mustCount(t, err)
	t.Cleanup(func() { log.Close() })
	command.Stderr = log
	in, err := command.StdinPipe()
	mustCount(t, err)
	out, err := command.StdoutPipe()
	mustCount(t, err)
	mustCount(t, command.Start())
	t.Cleanup(func() {
		in.Close()
		mustCount(t, command.Wait())
	})
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window)) // as our clients have them
	mustCount(t, err)
	t.Cleanup(func() { connection.Close() })
	return &countedSidecar{way, in, json.NewDecoder(out), connection, lockv1.NewLockServiceClient(connection)}
}

func (s *countedSidecar) counts(t *testing.T) (answer counts) {
	t.Helper()
	_, err := fmt.Fprintln(s.ask)
	mustCount(t, err)
	mustCount(t, s.answers.Decode(&answer))
	return answer
}

// requests are those to the ensemble since they were last counted, without those that time brings.
func (s *countedSidecar) requests() float64 { return timeless(s.link.ResetRequests()) }

// timeless sums up the requests that time does not bring: without pings, and without heartbeats, which are multi.
func timeless(asked map[link.Opcode]int) (sum float64) {
	for operation, count := range asked {
		if operation != link.Ping && operation != link.Multi {
			sum += float64(count)
		}
	}
	return sum
}

// lease opens a lease until the test ends.
func (s *countedSidecar) lease(t *testing.T) (id string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := leasev1.NewLeaseServiceClient(s.connection).Open(ctx, &leasev1.OpenRequest{}, grpc.WaitForReady(true))
	mustCount(t, err)
	opened, err := stream.Recv()
	mustCount(t, err)
	return opened.GetOpened().GetLeaseId()
}

// stream opens a lease whose stream carries its locks, until the test ends, and returns what acquires a lock over it and releases it.
func (s *countedSidecar) stream(t *testing.T) (pair func(name string)) {
	t.Helper()
	c := s.carried(t)
	return func(name string) {
		t.Helper()
		c.release(c.acquire(name))
	}
}

// carried opens a lease whose stream carries its locks, until the test ends, and returns what acquires one and what releases it.
func (s *countedSidecar) carried(t *testing.T) *carried {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := leasev1.NewLeaseServiceClient(s.connection).Multiplex(ctx, grpc.WaitForReady(true))
	mustCount(t, err)
	c := &carried{t: t, stream: stream}
	c.exchange(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}},
		func(answer *leasev1.MultiplexResponse) bool { return answer.GetOpened() != nil })
	return c
}

// A carried is a caller with a lease over Multiplex.
type carried struct {
	t      *testing.T
	stream leasev1.LeaseService_MultiplexClient
	newest uint64
}

func (c *carried) exchange(request *leasev1.MultiplexRequest, until func(*leasev1.MultiplexResponse) bool) {
	c.t.Helper()
	mustCount(c.t, c.stream.Send(request))
	for answered := false; !answered; {
		answer, err := c.stream.Recv()
		mustCount(c.t, err)
		if answered = until(answer); !answered && answer.GetEnded() != nil {
			c.t.Fatalf("a request ended: %v", answer)
		}
	}
}

// start asks for a lock, and returns when the answer is that which is awaited.
func (c *carried) start(name string, until func(*lockv1.AcquireResponse) bool) (id uint64) {
	c.t.Helper()
	c.newest++
	id = c.newest
	c.exchange(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: &leasev1.Start{
		RequestId: id, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: name}},
	}}}, func(answer *leasev1.MultiplexResponse) bool {
		return answer.GetEvent().GetRequestId() == id && until(answer.GetEvent().GetAcquire())
	})
	return id
}

func (c *carried) acquire(name string) (id uint64) {
	c.t.Helper()
	return c.start(name, func(answer *lockv1.AcquireResponse) bool { return answer.GetGranted() != nil })
}

func (c *carried) waitFor(name string) {
	c.t.Helper()
	c.start(name, func(answer *lockv1.AcquireResponse) bool { return answer.GetQueued() != nil })
}

func (c *carried) release(id uint64) {
	c.t.Helper()
	c.exchange(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: id}}},
		func(answer *leasev1.MultiplexResponse) bool { return answer.GetEnded().GetRequestId() == id })
}

// pair acquires a lock and releases it, and takes the end of its stream.
func (s *countedSidecar) pair(t *testing.T, lease, name string) {
	t.Helper()
	stream, err := s.locks.Acquire(t.Context(), &lockv1.AcquireRequest{Name: name, LeaseId: lease})
	for hold := ""; err == nil; {
		var event *lockv1.AcquireResponse
		if event, err = stream.Recv(); event.GetGranted() != nil && hold == "" {
			hold = event.GetGranted().GetHoldId()
			if _, err := s.locks.Release(t.Context(), &lockv1.ReleaseRequest{HoldId: hold}); err != nil {
				t.Errorf("release: %v", err)
				return
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("acquire: %v", err)
	}
}

func mustCount(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

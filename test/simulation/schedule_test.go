package simulation_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/traces"
)

var (
	firstSeed = flag.Uint64("seed", 1, "first seed of the random schedules")
	seeds     = flag.Uint64("seeds", defaultSeeds, "how many random schedules to run")
	step      = flag.Uint64("step", 0, "run every so many seeds, all in this process")
	recorded  = flag.String("traces", "", "the folder into which each schedule is written as a trace; all in this process")
)

// tally counts what the schedules brought about, so that they cannot become harmless unnoticed.
type tally struct{ grants, shared, losses, expired, reused, virtual atomic.Int64 }

const theSchedules = "TestNobodyHoldsBesideAnotherWhateverFails"

func TestNobodyHoldsBesideAnotherWhateverFails(t *testing.T) {
	if testing.Short() {
		*seeds = atMost(defaultSeeds)
	}
	if *step == 0 && *seeds > 1 && *recorded == "" {
		spread(t, uint64(runtime.NumCPU()))
		return
	}
	var total tally
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed += max(1, *step) {
		broken := play(t, seed, acquire, &total)
		for _, promise := range broken {
			t.Errorf("seed %d: %s", seed, promise)
		}
		if len(broken) > 0 {
			t.Logf("replay: go test ./test/simulation -run %s -cpu 1 -seeds 1 -seed %d", theSchedules, seed)
		}
	}
	grants, shared, losses, reused := total.grants.Load(), total.shared.Load(), total.losses.Load(), total.reused.Load()
	t.Logf("schedules from %d: %v of virtual time, %d grants, %d of them beside a reader's, %d holds lost, %d sessions expired, %d used again",
		*firstSeed, time.Duration(total.virtual.Load()).Round(time.Minute), grants, shared, losses, total.expired.Load(), reused)
	played := int64(*seeds / max(1, *step))
	if played >= 25 && (grants < played*5 || shared < played || losses < played/5 || reused < played) {
		t.Error("too little happens")
	}
}

// atMost bounds how many random schedules are run, unless -seeds says how many. With -short it is a quarter.
func atMost(most uint64) uint64 {
	if testing.Short() {
		most = (most + 3) / 4
	}
	run := min(*seeds, most)
	flag.Visit(func(given *flag.Flag) {
		if given.Name == "seeds" {
			run = *seeds
		}
	})
	return run
}

// spread shares the schedules out among processes. In a process with one thread of Go the same seed takes the same course, nearly
// always: not with several, nor with other schedules beside it.
func spread(t *testing.T, processes uint64) {
	t.Helper()
	var done sync.WaitGroup
	for i := range processes {
		arguments := []string{
			"-test.run", "^" + theSchedules + "$", "-test.cpu", "1", "-test.v",
			"-seed", fmt.Sprint(*firstSeed + i), "-seeds", fmt.Sprint(*seeds - min(i, *seeds)), "-step", fmt.Sprint(processes),
		}
		done.Go(func() {
			said, err := exec.CommandContext(t.Context(), os.Args[0], arguments...).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, said)
				return
			}
			t.Logf("%s", said)
		})
	}
	done.Wait()
}

// play plays one schedule and returns the promises that were broken.
func play(t *testing.T, seed uint64, acquire acquirer, total *tally) []string {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 0))
	timeout := []time.Duration{4 * time.Second, 6 * time.Second, 15 * time.Second}[dice.IntN(3)]
	options := simulation.Options{Seed: seed, Hosts: 2 + dice.IntN(2)}
	keep := record(t, &options, fmt.Sprintf("schedule-%04d.jsonl", seed))
	defer keep()
	return witnessed(t, options, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		began := time.Now()
		s := newStage(t, e, w, timeout)
		s.acquire, s.total = acquire, total
		s.run(dice, options.Hosts, (*caller).live)
		total.virtual.Add(int64(time.Since(began)))
		total.expired.Add(int64(w.ends))
	})
}

// record has what is done written into a file, if that was asked for.
func record(t *testing.T, options *simulation.Options, name string) (keep func()) {
	t.Helper()
	if *recorded == "" {
		return func() {}
	}
	recorder := traces.NewRecorder()
	options.Committed = recorder.Change
	stop := trace.Listen(recorder.Step)
	return func() {
		stop()
		if err := recorder.Write(filepath.Join(*recorded, name)); err != nil {
			t.Error(err)
		}
	}
}

var errStuck = errors.New("no progress after everything was healed")

// A stage is what one schedule is played on.
type stage struct {
	*testing.T
	*simulation.Ensemble
	*witness
	timeout time.Duration
	acquire acquirer
	total   *tally
	board   *board
	dress   func(*zookeeper.Config) // changes each sidecar's settings, or nil
	readers time.Duration           // the timeout of the readers' sessions, if it is another

	healed context.Context // ends when there are no more faults
	heal   context.CancelFunc
	over   context.Context // ends when it should be long over
	end    context.CancelFunc
}

func newStage(t *testing.T, e *simulation.Ensemble, w *witness, timeout time.Duration) *stage {
	t.Helper()
	s := &stage{T: t, Ensemble: e, witness: w, timeout: timeout, total: &tally{}, board: newBoard(w)}
	s.healed, s.heal = context.WithCancel(context.Background())
	s.over, s.end = context.WithTimeoutCause(context.Background(), 6*time.Minute, errStuck)
	return s
}

func (s *stage) run(dice *rand.Rand, hosts int, live func(*caller)) {
	defer s.end()
	for server := range 3 {
		s.Clock(server, rate(dice))
	}
	var callers, clients sync.WaitGroup
	for host := range hosts {
		client := s.sidecar(host, dice)
		for i := range 2 + dice.IntN(2) {
			caller := &caller{stage: s, client: client, host: host, pooled: i%2 == 0, dice: rand.New(rand.NewPCG(dice.Uint64(), 1))}
			callers.Go(func() { live(caller) })
		}
		clients.Go(func() {
			callers.Wait()
			client.Close()
		})
	}
	s.disturb(rand.New(rand.NewPCG(dice.Uint64(), 2)), hosts)
	clients.Wait()
	s.settle()
}

// rate is how fast a clock goes that is right within one percent.
func rate(dice *rand.Rand) float64 { return 0.99 + 0.02*dice.Float64() }

// sidecar is the session layer of one sidecar, with a clock of its own.
func (s *stage) sidecar(host int, dice *rand.Rand, dress ...func(*zookeeper.Config)) *zookeeper.Client {
	began, rate := time.Now(), rate(dice)
	config := zookeeper.Config{
		Servers: s.Addresses(), SessionTimeout: s.timeout, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Directories: []string{"/locks"}, FollowServers: true, Sleep: true,
		Dial:   s.Dialer(host),
		Clock:  func() time.Duration { return time.Duration(float64(time.Since(began)) * rate) },
		Random: &sharedDice{dice: rand.NewPCG(dice.Uint64(), 3)},
	}
	if s.dress != nil {
		dress = append(dress, s.dress)
	}
	for _, each := range dress {
		each(&config)
	}
	client, err := zookeeper.New(config)
	if err != nil {
		s.Fatal(err)
	}
	return client
}

type sharedDice struct {
	mu   sync.Mutex
	dice rand.Source
}

func (d *sharedDice) Uint64() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dice.Uint64()
}

// settle waits until every session that was left behind has expired, and looks at what remains.
func (s *stage) settle() {
	time.Sleep(max(s.timeout, s.readers) + 10*time.Second)
	s.Await()
	for _, lock := range locks {
		if names := s.Names(lock.Path); len(names) > 0 {
			s.accusef("left in %s: %q", lock.Path, names)
		}
	}
	if names := s.Names(group); len(names) > 0 {
		s.accusef("left in %s: %q", group, names)
	}
	if n := s.Sessions(); n > 0 {
		s.accusef("%d sessions are left", n)
	}
}

var (
	locks = []recipes.Lock{{Path: "/locks/orders"}, {Path: "/locks/stock"}}
	modes = [][]recipes.Mode{{recipes.Exclusive}, {recipes.Read, recipes.Read, recipes.Write}} // in which callers want each of them
)

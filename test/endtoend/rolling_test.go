package endtoend

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// What docs/runbook.md says of restarting the servers of an ensemble one at a time, with ZooKeeper's default tick and the sidecar's
// default settings.
func TestARollingRestartOfTheEnsembleLosesNothing(t *testing.T) {
	e := ensembleOf(t, defaultTick)
	with := setup{servers: e.ClientAddresses(), tick: defaultTick, timeout: 15 * time.Second}
	crowd := newRollingCrowd(t, startSidecar(t, with), startSidecar(t, with))
	leader, err := e.AwaitQuorum(t.Context())
	must(t, err)
	order := append(e.Followers(t.Context()), leader)
	if len(order) != 3 {
		t.Fatalf("%d servers", len(order))
	}
	for i, server := range order {
		what := fmt.Sprintf("follower %d", i+1)
		if server == leader {
			what = "the leader"
		}
		crowd.rest(t)
		began := now()
		server.Stop()
		down := now()
		must(t, server.Restart())
		awaitCaughtUp(t, e)
		t.Logf("%s ended within %v and had caught up %v later", what, down.since(began), now().since(down))
		crowd.settle(t, e)
		crowd.tell(t, what)
	}
	crowd.finish(t)
}

// awaitCaughtUp returns when all servers serve and the leader says that both others have what it has.
func awaitCaughtUp(t *testing.T, e *ensemble.Ensemble) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	must(t, e.AwaitAll(ctx))
	for {
		leader, err := e.AwaitQuorum(ctx)
		must(t, err)
		answer, _ := leader.Ask(ctx, "mntr")
		if strings.Contains(answer, "zk_synced_followers\t2") {
			return
		}
		await(t, "both followers are synced", patient, after(50*time.Millisecond))
		must(t, ctx.Err())
	}
}

// A rollingCrowd is callers of every kind, who must not notice more of a maintenance than they are told.
type rollingCrowd struct {
	sidecars []*sidecar
	holders  []*contender // the first has a line behind it
	line     []*contender
	members  *census
	watchers []*watcher
	followed []*follower
	numbers  *numbering
	routines map[string]*routine
	writes   int // under the lock of its routine
	stop     context.CancelFunc
}

func newRollingCrowd(t *testing.T, a, b *sidecar) *rollingCrowd {
	t.Helper()
	prefix := fmt.Sprint("rolling/", now())
	r := &rollingCrowd{
		sidecars: []*sidecar{a, b}, members: newCensus(prefix),
		numbers: &numbering{name: sequenceFor(t, a), given: map[int64]bool{}},
	}
	r.holders = []*contender{
		a.acquire(t, prefix+"/line"), b.acquire(t, prefix+"/alone"),
		a.acquire(t, prefix+"/leased", on(a.lasting(t, 10*time.Second))),
		b.acquire(t, prefix+"/shared", as(holdv1.Mode_MODE_READ)),
	}
	for _, holder := range r.holders {
		holder.granted(t)
	}
	for i := range 4 {
		waiter := r.sidecars[i%2].acquire(t, prefix+"/line")
		if ahead := waiter.queued(t); ahead != i+1 {
			t.Errorf("waiter %d was told that %d are ahead", i+1, ahead)
		}
		r.line = append(r.line, waiter)
	}
	for i, s := range r.sidecars {
		r.members.start(t, s, []string{fmt.Sprint("member-", i)})
		r.watchers = append(r.watchers, r.members.watch(t, s))
		r.followed = append(r.followed, follow(t, keysOf(t, s), prefix))
	}
	r.begin(t, prefix)
	return r
}

// begin has calls made all the time, from both sidecars.
func (r *rollingCrowd) begin(t *testing.T, prefix string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	config := keysOf(t, r.sidecars[0])
	r.routines = map[string]*routine{
		"writes of the configuration": repeatedly(ctx, 10*time.Millisecond, func(ctx context.Context) error {
			r.writes++
			_, err := config.Put(ctx, fmt.Sprintf("%s/key-%d", prefix, r.writes%7), fmt.Append(nil, r.writes))
			return err
		}),
	}
	for i, s := range r.sidecars {
		of := fmt.Sprint(" of sidecar ", i+1)
		r.routines["numbers"+of] = repeatedly(ctx, 5*time.Millisecond, r.numbers.through(s))
		r.routines["other locks"+of] = repeatedly(ctx, 10*time.Millisecond, locking(s, fmt.Sprint(prefix, "/free-", i)))
	}
	r.stop = func() {
		stop()
		for _, each := range r.routines {
			each.working.Wait()
		}
	}
	t.Cleanup(r.stop)
}

// rest lets the calls run undisturbed for a moment, some of each, and forgets what has come of them.
func (r *rollingCrowd) rest(t *testing.T) {
	t.Helper()
	await(t, "some calls", patient, after(500*time.Millisecond))
	for what, each := range r.routines {
		for began := now(); ; {
			if _, _, done := each.take(); done > 0 {
				break
			}
			if now().since(began) > patient {
				t.Fatalf("no %s while nothing is wrong", what)
			}
			await(t, what, patient, after(50*time.Millisecond))
		}
	}
}

// settle returns when everything is as an operator wants it before the next step.
func (r *rollingCrowd) settle(t *testing.T, e *ensemble.Ensemble) {
	t.Helper()
	for _, s := range r.sidecars {
		must(t, retry(t, func() error { return command(t, "health", "--ready", "--address="+s.address()) }))
	}
	must(t, retry(t, func() error { return command(t, "doctor", "--zookeeper="+strings.Join(e.ClientAddresses(), ",")) }))
	r.calm(t)
}

// calm returns when no lease is suspended and calls of each kind are answered.
func (r *rollingCrowd) calm(t *testing.T) {
	t.Helper()
	for i, s := range r.sidecars {
		for began := now(); s.gauge(t, "sidekeeper_leases_suspended") > 0; {
			if now().since(began) > patient {
				t.Fatalf("leases of sidecar %d stay suspended", i+1)
			}
			await(t, "a moment", patient, after(50*time.Millisecond))
		}
	}
	for _, each := range r.routines {
		each.awaitMore(t)
	}
}

// command runs sidekeeper and says how it has failed. Doctor's warnings, with which it exits with 2, are no failure.
func command(t *testing.T, arguments ...string) error {
	t.Helper()
	program, err := sidekeeper()
	must(t, err)
	running := exec.Command(program, arguments...)
	output, err := running.CombinedOutput()
	if err != nil && (arguments[0] != "doctor" || running.ProcessState.ExitCode() != 2) {
		return fmt.Errorf("sidekeeper %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return nil
}

// tell tells what callers have noticed, and fails the test if it was more than they may.
func (r *rollingCrowd) tell(t *testing.T, what string) {
	t.Helper()
	for _, of := range append(r.holders[:len(r.holders):len(r.holders)], r.line...) {
		if !of.isOpen() {
			t.Fatalf("%s: a stream ended with %s", what, of.end)
		}
	}
	for i, waiter := range r.line {
		if _, granted, _ := waiter.events.find(isGranted); granted {
			t.Fatalf("%s: waiter %d was granted a lock that another holds", what, i+1)
		}
	}
	for _, w := range r.watchers {
		w.converge(t, what)
	}
	for kind, each := range r.routines {
		longest, refused, done := each.take()
		t.Logf("%s: %s: %d, the longest pause %v; refused: %s", what, kind, done, longest.Round(time.Millisecond), refused)
		if done == 0 || strings.Contains(refused, "ResourceExhausted") || strings.Contains(refused, "Internal") {
			t.Errorf("%s: %s", what, kind)
		}
	}
	for i, holder := range r.holders {
		count, longest := holder.suspensions()
		t.Logf("%s: holder %d was suspended %d times so far, for %v at most", what, i+1, count, longest.Round(time.Millisecond))
	}
}

// finish judges what everybody has seen, and serves the line.
func (r *rollingCrowd) finish(t *testing.T) {
	t.Helper()
	r.stop()
	config := keysOf(t, r.sidecars[1])
	prefix, _, _ := strings.Cut(r.holders[0].name, "/line")
	_, err := config.Put(t.Context(), prefix+"/zz-last", []byte("x"))
	must(t, err)
	stored := listed(t, config, prefix)
	for _, f := range r.followed {
		awaitState(t, f, stored)
		if _, fault := f.state(); fault != "" {
			t.Error(fault)
		}
	}
	for _, wrong := range r.numbers.wrong {
		t.Error("a number: ", wrong)
	}
	r.members.verify(t)
	before := r.holders[0]
	for i, waiter := range r.line {
		for _, later := range r.line[i:] {
			if _, granted, _ := later.events.find(isGranted); granted {
				t.Fatal("granted out of turn")
			}
		}
		before.release(t)
		succeeds(t, before, waiter, "OK")
		before = waiter
	}
	t.Logf("%d numbers, none twice; %d writes", len(r.numbers.given), r.writes)
}

// What happens when the pause between two servers is too short, so that no majority serves for longer than a session lasts: what is
// held is lost in order, and told, and passes on with a larger token when a majority is back.
func TestTwoServersThatAreAwayForTooLongLoseWhatIsHeldInOrder(t *testing.T) {
	e := ensembleOf(t, quickTick)
	brief, long := quick(e), quick(e)
	brief.timeout, long.timeout = 4*time.Second, 30*time.Second
	a, b := startSidecar(t, brief), startSidecar(t, long)
	holder, waiter := pair(t, a, b, fmt.Sprint("rolling/away-", now()))
	alike := a.acquire(t, holder.name)
	alike.queued(t)
	other, kept := a.acquire(t, holder.name+"-other"), b.acquire(t, holder.name+"-kept")
	other.granted(t)
	kept.granted(t)
	leader, err := e.AwaitQuorum(t.Context())
	must(t, err)
	began := now()
	for _, server := range e.Servers() {
		if server != leader {
			server.Stop()
		}
	}
	lost := holder.awaitEnd(t, "Aborted LEASE_LOST")
	other.awaitEnd(t, "Aborted LEASE_LOST")
	alike.awaitEnd(t, "Unavailable ENSEMBLE_UNREACHABLE")
	if count, _ := holder.suspensions(); count == 0 {
		t.Error("the holder was not suspended")
	}
	expect(t, "Unavailable ENSEMBLE_UNREACHABLE", a.refused(t, holder.name))
	if _, granted, _ := waiter.events.find(isGranted); granted {
		t.Error("granted without a majority")
	}
	repair(t, e)
	back := now()
	margin := succeeds(t, holder, waiter, "Aborted LEASE_LOST")
	if again := a.acquire(t, other.name); again.granted(t).token <= other.granted(t).token {
		t.Error("a token that is no larger")
	}
	if !kept.isOpen() {
		t.Errorf("a lock whose session lasts longer ended with %s", kept.end)
	}
	t.Logf("told LEASE_LOST %v after the first server was ended; granted to the next %v after that, %v after a majority was back",
		lost.since(began), margin, waiter.granted(t).at.since(back))
}

package endtoend

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// atOnce is how soon a lock passes on that was given up in the open: long before any lease has run out.
const atOnce = 3 * time.Second

func TestALockPassesOn(t *testing.T) {
	e := ensembleOf(t, quickTick)
	a, b := startSidecar(t, quick(e)), startSidecar(t, quick(e))
	soon := func(t *testing.T, margin time.Duration) {
		t.Helper()
		if margin > atOnce {
			t.Errorf("granted only %v after the end", margin)
		}
		t.Logf("granted %v after the end", margin)
	}
	t.Run("after Release", func(t *testing.T) {
		holder, waiter := pair(t, a, b, "handover/release")
		holder.release(t)
		soon(t, succeeds(t, holder, waiter, "OK"))
	})
	t.Run("after the caller's cancel", func(t *testing.T) {
		holder, waiter := pair(t, a, b, "handover/cancel")
		holder.gaveUp = now()
		holder.cancel()
		soon(t, succeeds(t, holder, waiter, "Canceled"))
	})
	t.Run("after the caller's SIGKILL", func(t *testing.T) {
		caller := startCaller(t, a, callerOrder{Names: []string{"handover/killed"}})
		token, _ := caller.awaitLine(t, "granted", patient)
		waiter := b.acquire(t, "handover/killed")
		waiter.queued(t)
		killed := now()
		caller.kill()
		next := waiter.granted(t)
		soon(t, next.at.since(killed))
		if before, err := strconv.ParseInt(token, 10, 64); err != nil || next.token <= before {
			t.Errorf("fencing token %d after %s", next.token, token)
		}
	})
	t.Run("after the sidecar's SIGTERM", func(t *testing.T) {
		stopping := quick(e)
		stopping.flags = []string{"--drain-timeout=1s"}
		c := startSidecar(t, stopping)
		holder, waiter := pair(t, c, b, "handover/stopped")
		second := c.acquire(t, "handover/stopped")
		second.queued(t)
		c.signal(syscall.SIGTERM)
		second.awaitEnd(t, "Unavailable SIDECAR_STOPPING")
		if asked := holder.asked(t); asked.GetRequestedBy() != "sidekeeper" || asked.GetGrace().AsDuration() > time.Second {
			t.Errorf("asked to let go with %v", asked)
		}
		soon(t, succeeds(t, holder, waiter, "Aborted SIDECAR_STOPPING"))
		if code := c.awaitExit(t, patient); code != 0 {
			t.Errorf("the sidecar exits with %d", code)
		}
	})
	t.Run("after the sidecar's SIGKILL", func(t *testing.T) {
		doomed := quick(e)
		doomed.timeout = 2 * time.Second
		c := startSidecar(t, doomed)
		holder, waiter := pair(t, c, b, "handover/crashed")
		c.kill()
		margin := succeeds(t, holder, waiter, "Unavailable")
		if margin > doomed.timeout+5*quickTick+6*time.Second {
			t.Errorf("granted only %v after the end", margin)
		}
		t.Logf("granted %v after the end", margin)
	})
}

func TestWhoGivesUpLeavesNoNode(t *testing.T) {
	e := ensembleOf(t, quickTick)
	a, b := startSidecar(t, quick(e)), startSidecar(t, quick(e))
	direct := connect(t, e)
	const name = "handover/queue"
	holder := a.acquire(t, name)
	holder.granted(t)
	for _, s := range []*sidecar{a, b} {
		expect(t, "FailedPrecondition LOCK_HELD", s.refused(t, name, waiting(0)))
		awaitPlaces(t, direct, name, 1)
		expect(t, "DeadlineExceeded WAIT_TIMEOUT", s.refused(t, name, waiting(200*time.Millisecond)))
		awaitPlaces(t, direct, name, 1)
		for range 5 {
			waiter := s.acquire(t, name)
			<-after(10 * time.Millisecond)
			waiter.cancel()
			waiter.awaitEnd(t, "Canceled")
		}
		awaitPlaces(t, direct, name, 1)
	}
	holder.release(t)
	awaitPlaces(t, direct, name, 0)
	last := b.acquire(t, name, waiting(0))
	last.granted(t)
	last.release(t)
	awaitGone(t, direct, directory(name))
}

// awaitGone waits until the ensemble has taken away a directory that nobody uses any more.
func awaitGone(t *testing.T, direct *zk.Conn, path string) {
	t.Helper()
	overdue := time.NewTimer(patient)
	defer overdue.Stop()
	for {
		there, _, changed, err := direct.ExistsW(path)
		must(t, err)
		if !there {
			return
		}
		select {
		case <-changed:
		case <-overdue.C:
			t.Fatalf("%s is still there", path)
		}
	}
}

// connect is a plain client of the ensemble, past the links.
func connect(t *testing.T, e *ensemble.Ensemble) *zk.Conn {
	t.Helper()
	var addresses []string
	for _, server := range e.Servers() {
		addresses = append(addresses, server.RealAddress())
	}
	conn, _, err := zk.Connect(addresses, 10*time.Second, zk.WithLogger(silent{}))
	must(t, err)
	t.Cleanup(conn.Close)
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// directory is where a lock lies in the ensemble.
func directory(name string) string {
	return "/sidekeeper/locks/" + strings.ReplaceAll(name, "/", "%2F")
}

// awaitPlaces waits until a lock has so many contenders, at once as such things go.
func awaitPlaces(t *testing.T, direct *zk.Conn, name string, want int) {
	t.Helper()
	overdue := time.NewTimer(atOnce)
	defer overdue.Stop()
	for {
		names, _, changed, err := direct.ChildrenW(directory(name))
		if err == zk.ErrNoNode && want == 0 {
			return
		}
		must(t, err)
		if len(names) == want {
			return
		}
		select {
		case <-changed:
		case <-overdue.C:
			t.Fatalf("%s has the places %q instead of %d", name, names, want)
		}
	}
}

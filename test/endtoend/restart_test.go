package endtoend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// What docs/operations.md says of upgrading a sidecar in its place: SIGTERM, its end, and another on the same socket.
func TestASidecarThatIsRestartedInItsPlaceIsFoundAgainByItsCallers(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	with.flags = []string{"--drain-timeout=10s"}
	old, other := startSidecar(t, with), startSidecar(t, quick(e))
	prefix := fmt.Sprint("restart/", now())
	stubborn, behind := pair(t, old, other, prefix+"-stubborn")
	waiter := old.acquire(t, stubborn.name)
	waiter.queued(t)
	client := old.client(t)
	polite, leader := letsGo(t, client, prefix+"-polite"), leads(t, client, prefix+"-leader")
	followed := follow(t, client.Config(), prefix)
	numbers := &numbering{name: sequenceFor(t, old), given: map[int64]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	bare := repeatedly(ctx, time.Millisecond, numbers.through(old))
	library := repeatedly(ctx, time.Millisecond, numbers.byLibrary(client))
	t.Cleanup(func() {
		stop()
		bare.working.Wait()
		library.working.Wait()
	})

	began := now()
	old.signal(syscall.SIGTERM)
	t.Logf("the waiter was told %v after SIGTERM", waiter.awaitEnd(t, "Unavailable SIDECAR_STOPPING").since(began))
	if asked := stubborn.asked(t); asked.GetRequestedBy() != "sidekeeper" {
		t.Errorf("asked to let go with %v", asked)
	}
	await(t, "the polite holder lets go", patient, polite.ended)
	must(t, polite.cause)
	expect(t, "Unavailable SIDECAR_STOPPING", old.refused(t, prefix+"-more"))
	refusedToStart(t, old, with)
	margin := succeeds(t, stubborn, behind, "Aborted SIDECAR_STOPPING")
	if code := old.awaitExit(t, patient); code != 0 {
		t.Errorf("the sidecar exits with %d", code)
	}
	t.Logf("the stubborn holder was told %v after SIGTERM, and the next was granted the lock %v later", stubborn.ended.since(began), margin)
	ended := now()
	_, refused, _ := bare.take()
	t.Logf("the process ended %v after SIGTERM; until then bare stubs were told %s", ended.since(began), refused)
	library.take()

	fresh := launchSidecarIn(t, old.folder, with)
	fresh.awaitReady(t)
	t.Logf("the new one was ready %v after its start", now().since(ended))
	last := stubborn.granted(t).token
	behind.release(t)
	for _, way := range []*sidecar{old, fresh} { // on the connection that there was, and on a new one
		way.awaitFound(t)
		t.Logf("callers of its connection reached it %v after the end of the old one", now().since(ended))
		again := way.acquire(t, stubborn.name)
		if token := again.granted(t).token; token <= last {
			t.Errorf("fencing token %d after %d", token, last)
		}
		again.release(t)
		again.awaitEnd(t, "OK")
	}
	leader.await(t, "leads again", patient, func(term int) bool { return term == 2 })
	bare.awaitMore(t)
	library.awaitMore(t)
	stop()
	_, refused, _ = bare.take()
	longest, failed, _ := library.take()
	t.Logf("after that bare stubs were told %s; the Go client's longest call took %v", refused, longest)
	if failed != "" {
		t.Errorf("the Go client was told %s", failed)
	}
	bare.working.Wait()
	library.working.Wait()
	for _, wrong := range numbers.wrong {
		t.Error("a number: ", wrong)
	}
	_, err := client.Config().Put(t.Context(), prefix+"/zz-last", []byte("x"))
	must(t, err)
	awaitState(t, followed, listed(t, client.Config(), prefix))
}

// byLibrary takes numbers with the Go client.
func (n *numbering) byLibrary(client *sidekeeperclient.Client) func(context.Context) error {
	return n.each(client.Sequence(n.name).Next)
}

// letsGo holds a lock with the Go client until it is asked to let go. cause is what WithLock returned.
func letsGo(t *testing.T, client *sidekeeperclient.Client, name string) *keptHold {
	t.Helper()
	kept, granted := &keptHold{ended: make(chan struct{})}, make(chan struct{})
	go func() {
		defer close(kept.ended)
		kept.cause = client.WithLock(context.Background(), name, sidekeeperclient.LockOptions{},
			func(ctx context.Context, lock *sidekeeperclient.Lock) error {
				close(granted)
				select {
				case <-lock.Revocation():
				case <-ctx.Done():
				}
				return nil
			})
	}()
	await(t, "granted", patient, granted)
	return kept
}

// leads leads until the test ends, and counts its terms.
func leads(t *testing.T, client *sidekeeperclient.Client, name string) *record[int] {
	t.Helper()
	terms, count := newRecord[int](), 0
	ctx, cancel := context.WithCancel(context.Background())
	var leading sync.WaitGroup
	leading.Go(func() {
		_ = client.RunWhileLeader(ctx, name, sidekeeperclient.LockOptions{}, func(ctx context.Context, _ *sidekeeperclient.Lock) error {
			count++
			terms.add(count)
			<-ctx.Done()
			return nil
		})
	})
	t.Cleanup(func() {
		cancel()
		leading.Wait()
	})
	terms.await(t, "leads", patient, func(int) bool { return true })
	return terms
}

// awaitFound returns when calls reach the sidecar again on a connection that was another's until now.
func (s *sidecar) awaitFound(t *testing.T) {
	t.Helper()
	must(t, retry(t, func() error {
		_, err := s.locks.Get(t.Context(), &lockv1.GetRequest{Name: "restart"})
		return err
	}))
}

// awaitMore returns when one more call has been answered as it should.
func (r *routine) awaitMore(t *testing.T) {
	t.Helper()
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.done
	}
	for began, before := now(), count(); count() == before; {
		if now().since(began) > patient {
			t.Fatal("calls are not answered any more")
		}
		await(t, "a moment", patient, after(10*time.Millisecond))
	}
}

// refusedToStart starts a second sidecar on the sockets of the first, which must not start, nor harm the first.
func refusedToStart(t *testing.T, first *sidecar, with setup) {
	t.Helper()
	second := first.serving(t, with)
	defer time.AfterFunc(patient, func() { second.Process.Kill() }).Stop()
	output, err := second.CombinedOutput()
	failed := &exec.ExitError{}
	if !errors.As(err, &failed) || failed.ExitCode() != 64 || !strings.Contains(string(output), "another process already serves") {
		t.Errorf("a second sidecar on the socket of the first: %v: %s", err, output)
	}
}

func TestASecondSidecarOnTheSameSocketDoesNotStart(t *testing.T) {
	e := ensembleOf(t, quickTick)
	first := startSidecar(t, quick(e))
	holder, waiter := pair(t, first, first, fmt.Sprint("restart/second-", now()))
	refusedToStart(t, first, quick(e))
	for _, each := range []*contender{holder, waiter} {
		if !each.isOpen() {
			t.Errorf("a stream of the first ended with %s", each.end)
		}
	}
	holder.release(t)
	succeeds(t, holder, waiter, "OK")
}

// A sidecar that is killed ends nothing in order. Its callers lose contact, its socket file stays, and its locks pass on when its
// sessions have run out: not before what its callers were told is over.
func TestLocksOfAKilledSidecarPassOnToItsSuccessorAndNotTooEarly(t *testing.T) {
	e := ensembleOf(t, quickTick)
	brief := quick(e)
	brief.timeout = 4 * time.Second
	for round := range *rounds {
		t.Run(fmt.Sprint(round+1), func(t *testing.T) {
			killed := startSidecar(t, brief)
			name := fmt.Sprint("restart/killed-", now())
			caller := startCaller(t, killed, callerOrder{Names: []string{name + "-counting"}})
			caller.awaitLine(t, "granted", patient)
			bare := killed.acquire(t, name+"-bare")
			bare.granted(t)
			library := keepWithLibrary(t, killed, name+"-library")
			await(t, "heartbeats", patient, after(time.Second+time.Duration(round%5)*300*time.Millisecond))
			killed.kill()
			dead := now()
			bare.awaitEnd(t, "Unavailable")
			await(t, "the end of the library's hold", patient, library.ended)
			_, err := os.Stat(strings.TrimPrefix(killed.address(), "unix://"))
			must(t, err) // the socket file is there and nobody answers on it

			fresh := launchSidecarIn(t, killed.folder, brief)
			fresh.awaitReady(t)
			t.Logf("its successor was ready %v after its death", now().since(dead))
			counted, library2 := fresh.acquire(t, name+"-counting"), fresh.acquire(t, name+"-library")
			margin := succeeds(t, bare, fresh.acquire(t, bare.name), "Unavailable")
			told := counted.granted(t).at.since(lastTold(t, caller))
			if told < 0 {
				t.Errorf("granted %v before what a caller was told was over", -told)
			}
			if library2.granted(t).at < library.at {
				t.Error("granted before the library's hold was over")
			}
			if latest := brief.timeout + 5*quickTick + 6*time.Second; margin > latest {
				t.Errorf("granted only %v after the death", margin)
			}
			t.Logf("granted %v after the death, and %v after the validity that a caller was told; the library knew %v after the death",
				margin, told, library.at.since(dead))
		})
	}
}

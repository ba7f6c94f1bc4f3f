package endtoend

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// resuming is a sidecar that keeps its state, which another in its place comes back to.
func resuming(t *testing.T, with setup, flags ...string) (begin func() *sidecar) {
	t.Helper()
	folder := t.TempDir()
	with.flags = append(append(with.flags, flags...), "--state-dir="+filepath.Join(folder, "state"))
	return func() *sidecar { return launchSidecarIn(t, folder, with) }
}

// What a caller holds, waits for and is a member of survives the death of its sidecar, on one lease or on a lease each: the same nodes stand
// there, before and after.
func TestWhatACallerHasOutlivesItsSidecar(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	with.timeout = 6 * time.Second
	other, direct := startSidecar(t, with), connect(t, e)
	begin := resuming(t, with)
	for round := range *rounds + 1 {
		alone := round%2 == 1 // with a lease each
		t.Run(fmt.Sprint(round/2+1, map[bool]string{false: " on a lease", true: " on a lease each"}[alone]), func(t *testing.T) {
			killed := begin()
			killed.awaitReady(t)
			name := fmt.Sprint("resume/", now())
			client := killed.client(t)
			lease, err := client.OpenLease(t.Context(), sidekeeperclient.LeaseOptions{Owner: "resumer"})
			must(t, err)
			on := lease
			if alone {
				on = nil
			}
			resumed := make(chan struct{}, 16)
			held, err := client.Acquire(t.Context(), name+"-held", sidekeeperclient.LockOptions{
				Lease: on, OnResumed: func() { resumed <- struct{}{} },
			})
			must(t, err)
			member, err := client.Join(t.Context(), "resume", fmt.Sprint("m", now()), sidekeeperclient.JoinOptions{Lease: on})
			must(t, err)
			ahead := other.acquire(t, name+"-awaited")
			ahead.granted(t)
			type turn struct {
				lock *sidekeeperclient.Lock
				err  error
			}
			awaited, queued := make(chan turn, 1), make(chan struct{}, 16)
			go func() {
				lock, err := client.Acquire(context.Background(), name+"-awaited", sidekeeperclient.LockOptions{
					Lease: on, OnQueued: func(sidekeeperclient.Queued) { queued <- struct{}{} },
				})
				awaited <- turn{lock, err}
			}()
			await(t, "queued", patient, queued)
			behind, rival := other.acquire(t, name+"-awaited"), other.acquire(t, name+"-held")
			behind.queued(t)
			rival.queued(t)
			before := [][]string{places(t, direct, name+"-held"), places(t, direct, name+"-awaited")}

			killed.kill()
			dead := now()
			fresh := begin()
			await(t, "resumed", patient, resumed)
			t.Logf("the lock was the caller's again %v after the death of its sidecar", now().since(dead))
			then := [][]string{places(t, direct, name+"-held"), places(t, direct, name+"-awaited")}
			if fmt.Sprint(before) != fmt.Sprint(then) {
				t.Errorf("nodes before and after: %q, %q", before, then)
			}
			await(t, "more than a session's timeout", patient, after(with.timeout+3*time.Second))
			for what, claim := range map[string]interface {
				Err() error
				Valid() bool
			}{"lease": lease, "lock": held, "member": member} {
				if claim.Err() != nil || !claim.Valid() {
					t.Errorf("%s: %v", what, claim.Err())
				}
			}
			for _, waiting := range []*contender{rival, behind} {
				if _, granted, _ := waiting.events.find(isGranted); granted || !waiting.isOpen() {
					t.Errorf("%s was granted to somebody else, or its waiter's stream has ended with %s", waiting.name, waiting.end)
				}
			}
			if len(awaited) > 0 {
				t.Error("what was waited for was granted while another held it")
			}
			ahead.release(t)
			got := <-awaited
			must(t, got.err)
			must(t, got.lock.Release(t.Context()))
			behind.granted(t)
			must(t, held.Release(t.Context()))
			if token := rival.granted(t).token; token <= held.FencingToken() {
				t.Errorf("token %d after %d", token, held.FencingToken())
			}
			must(t, member.Leave(t.Context()))
			must(t, lease.Close(t.Context()))
			fresh.signal(syscall.SIGTERM)
			if code := fresh.awaitExit(t, patient); code != 0 {
				t.Errorf("the sidecar exits with %d", code)
			}
		})
	}
}

// places are the nodes in a lock's directory, with what tells them from others of the same name.
func places(t *testing.T, direct *zk.Conn, name string) (nodes []string) {
	t.Helper()
	_, err := direct.Sync(directory(name))
	must(t, err)
	children, _, err := direct.Children(directory(name))
	must(t, err)
	for _, child := range children {
		_, stat, err := direct.Get(directory(name) + "/" + child)
		must(t, err)
		nodes = append(nodes, fmt.Sprintf("%s %d %x", child, stat.Czxid, stat.EphemeralOwner))
	}
	return nodes
}

// A sidecar that is stopped and hands over ends what nobody can resume, and leaves the rest to the next one.
func TestASidecarThatHandsOverCostsNoLease(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	begin := resuming(t, with, "--sigterm=handover", "--drain-timeout=1s")
	other, direct := startSidecar(t, with), connect(t, e)
	old := begin()
	old.awaitReady(t)
	name := fmt.Sprint("handover/", now())
	client := old.client(t)
	lease, err := client.OpenLease(t.Context(), sidekeeperclient.LeaseOptions{})
	must(t, err)
	resumed := make(chan struct{}, 16)
	held, err := client.Acquire(t.Context(), name+"-held", sidekeeperclient.LockOptions{
		Lease: lease, OnResumed: func() { resumed <- struct{}{} },
		OnRevocation: func(asked sidekeeperclient.Revocation) { t.Errorf("asked to let go: %v", asked) },
	})
	must(t, err)
	single := old.acquire(t, name+"-single")
	single.granted(t)
	rivals := []*contender{other.acquire(t, name+"-held"), other.acquire(t, name+"-single")}
	rivals[0].queued(t)
	rivals[1].queued(t)
	before := places(t, direct, name+"-held")
	old.signal(syscall.SIGTERM)
	rivals[1].granted(t)
	single.awaitEnd(t, "Aborted SIDECAR_STOPPING")
	if code := old.awaitExit(t, patient); code != 0 {
		t.Errorf("the sidecar exits with %d", code)
	}
	fresh := begin()
	await(t, "resumed", patient, resumed)
	if then := places(t, direct, name+"-held"); fmt.Sprint(before) != fmt.Sprint(then) || held.Err() != nil {
		t.Errorf("before %q, then %q: %v", before, then, held.Err())
	}
	must(t, held.Release(t.Context()))
	rivals[0].granted(t)
	must(t, lease.Close(t.Context()))
	fresh.signal(syscall.SIGTERM)
	if code := fresh.awaitExit(t, patient); code != 0 {
		t.Errorf("the next sidecar exits with %d", code)
	}
}

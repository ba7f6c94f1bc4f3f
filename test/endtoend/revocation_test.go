package endtoend

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/protobuf/types/known/durationpb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func TestHoldersAreAskedToLetGo(t *testing.T) {
	e := ensembleOf(t, quickTick)
	a, b := startSidecar(t, quick(e)), startSidecar(t, quick(e))
	direct := connect(t, e)

	t.Run("by another sidecar's caller", func(t *testing.T) {
		const name = "revocation/asked"
		holder, waiter := pair(t, a, b, name)
		answer, err := b.locks.Revoke(t.Context(), &lockv1.RevokeRequest{Name: name, Reason: "maintenance"})
		must(t, err)
		asked := holder.asked(t)
		if answer.GetAsked() != 1 || asked.GetReason() != "maintenance" || asked.GetRequestedBy() == "" || asked.GetGrace() != nil {
			t.Errorf("asked %d, with %v", answer.GetAsked(), asked)
		}
		holder.release(t)
		succeeds(t, holder, waiter, "OK")
	})
	t.Run("by an operator, who ends the hold when the grace is over", func(t *testing.T) {
		const name = "revocation/forced"
		holder, waiter := pair(t, a, b, name)
		request := &lockv1.RevokeRequest{Name: name, Reason: "now", Grace: durationpb.New(time.Second)}
		_, err := b.locks.Revoke(t.Context(), request)
		expect(t, "PermissionDenied OPERATOR_ONLY", err)
		began := now()
		_, err = b.operators.Revoke(t.Context(), request)
		must(t, err)
		if grace := holder.asked(t).GetGrace().AsDuration(); grace <= 0 || grace > time.Second {
			t.Errorf("asked with a grace of %v", grace)
		}
		succeeds(t, holder, waiter, "Aborted LOCK_REVOKED")
		if took := holder.ended.since(began); took < time.Second {
			t.Errorf("ended %v after it was asked with a grace of a second", took)
		}
		_, err = a.locks.Release(t.Context(), &lockv1.ReleaseRequest{HoldId: holder.granted(t).id})
		expect(t, "Aborted LOCK_REVOKED", err)
	})
	for _, mark := range []string{"__REVOKE__", "unlock"} {
		t.Run("by a plain client that writes "+mark, func(t *testing.T) {
			name := "revocation/" + strings.Trim(mark, "_")
			holder, waiter := pair(t, a, b, name)
			_, err := direct.Set(firstPlace(t, direct, name), []byte(mark), -1)
			must(t, err)
			if asked := holder.asked(t); asked.GetRequestedBy() != "" || asked.GetGrace() != nil {
				t.Errorf("asked with %v", asked)
			}
			holder.release(t)
			succeeds(t, holder, waiter, "OK")
		})
	}
	t.Run("in the form that a plain client understands", func(t *testing.T) {
		const name = "revocation/foreign"
		foreign := zk.NewLock(direct, directory(name), zk.WorldACL(zk.PermAll))
		must(t, foreign.Lock())
		waiter := a.acquire(t, name)
		waiter.queued(t)
		answer, err := a.operators.Revoke(t.Context(), &lockv1.RevokeRequest{Name: name, Grace: durationpb.New(0)})
		must(t, err)
		data, _, err := direct.Get(firstPlace(t, direct, name))
		must(t, err)
		if answer.GetAsked() != 1 || string(data) != "__REVOKE__" {
			t.Errorf("asked %d, with %q", answer.GetAsked(), data)
		}
		must(t, foreign.Unlock())
		waiter.granted(t)
	})
}

func TestBreakEndsExactlyThatHold(t *testing.T) {
	e := ensembleOf(t, quickTick)
	a, b := startSidecar(t, quick(e)), startSidecar(t, quick(e))
	direct := connect(t, e)

	t.Run("with the wrong token and the right one", func(t *testing.T) {
		const name = "break/token"
		holder, waiter := pair(t, a, b, name)
		request := &lockv1.BreakRequest{Name: name, FencingToken: holder.granted(t).token, Reason: "stuck"}
		_, err := b.locks.Break(t.Context(), request)
		expect(t, "PermissionDenied OPERATOR_ONLY", err)
		_, err = b.operators.Break(t.Context(), &lockv1.BreakRequest{Name: name, FencingToken: request.GetFencingToken() - 1, Reason: "stuck"})
		expect(t, "FailedPrecondition FENCING_TOKEN_MISMATCH", err)
		if !holder.isOpen() {
			t.Fatalf("the wrong token ended the hold with %s", holder.end)
		}
		answer, err := b.operators.Break(t.Context(), request)
		must(t, err)
		if answer.GetForced() {
			t.Error("forced, though the holder's sidecar was there")
		}
		succeeds(t, holder, waiter, "Aborted LOCK_BROKEN")
		_, err = b.operators.Break(t.Context(), request)
		expect(t, "FailedPrecondition FENCING_TOKEN_MISMATCH", err)
		if !waiter.isOpen() {
			t.Errorf("the next holder's stream ended with %s", waiter.end)
		}
	})
	t.Run("by force, where the sidecar is frozen", func(t *testing.T) {
		const name = "break/force"
		c := startSidecar(t, quick(e))
		holder, waiter := pair(t, c, b, name)
		c.freeze()
		answer, err := b.operators.Break(t.Context(), &lockv1.BreakRequest{
			Name: name, FencingToken: holder.granted(t).token, Reason: "stuck", ForceAfter: durationpb.New(500 * time.Millisecond),
		})
		must(t, err)
		if !answer.GetForced() {
			t.Error("not forced, though the holder's sidecar was frozen")
		}
		waiter.granted(t)
		c.thaw()
		holder.awaitEnd(t, "Aborted LOCK_BROKEN")
	})
	t.Run("by hand, in the ensemble", func(t *testing.T) {
		const name = "break/hand"
		holder, waiter := pair(t, a, b, name)
		must(t, direct.Delete(firstPlace(t, direct, name), -1))
		holder.awaitEnd(t, "Aborted LOCK_BROKEN")
		waiter.granted(t)
	})
}

// firstPlace is the path of the node that is first in a lock's queue.
func firstPlace(t *testing.T, direct *zk.Conn, name string) string {
	t.Helper()
	_, err := direct.Sync(directory(name))
	must(t, err)
	names, _, err := direct.Children(directory(name))
	must(t, err)
	first := ""
	for _, name := range names {
		if first == "" || sequence(name) < sequence(first) {
			first = name
		}
	}
	return directory(name) + "/" + first
}

// sequence is what the server appended to a node's name.
func sequence(name string) string { return name[len(name)-10:] }

package endtoend

import (
	"context"
	"errors"
	"testing"
	"time"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A holder has checked its lock and sent its writes when its sidecar is frozen. They are carried out long after the lock was granted to
// another one: the guarded ones are refused, and the one without a guard does its damage.
func TestAFrozenHoldersLateWriteIsRefused(t *testing.T) {
	e := ensembleOf(t, quickTick)
	brief := quick(e)
	brief.timeout = 4 * time.Second
	a, b := startSidecar(t, brief), startSidecar(t, quick(e))
	client := a.client(t)
	lock, err := client.Acquire(t.Context(), "guard/late", sidekeeperclient.LockOptions{})
	must(t, err)
	next := b.acquire(t, "guard/late")
	next.queued(t)

	ctx, cancel := context.WithTimeout(t.Context(), 2*patient)
	defer cancel()
	guarded := map[string]context.Context{"hold": lock.Guard(ctx), "ticket": lock.Ticket().Guard(ctx), "nothing": ctx}
	put := func(what string) error {
		_, err := client.Config().Put(guarded[what], "guard/"+what, []byte("by the first"))
		return err
	}
	for what := range guarded {
		must(t, put(what))
	}
	a.freeze()
	late := map[string]chan error{}
	for what := range guarded {
		ended := make(chan error, 1)
		late[what] = ended
		go func() {
			err := put(what)
			for errors.Is(err, sidekeeperclient.ErrEnsembleUnreachable) && ctx.Err() == nil { // the sidecar has just woken up
				err = put(what)
			}
			ended <- err
		}()
	}
	next.granted(t)
	config := keysOf(t, b)
	for what := range guarded {
		_, err := config.Put(t.Context(), "guard/"+what, []byte("by the second"))
		must(t, err)
	}
	a.thaw()
	for what := range guarded {
		err, value := <-late[what], "by the second"
		if what == "nothing" {
			must(t, err)
			value = "by the first"
		} else if !errors.Is(err, sidekeeperclient.ErrGuardLost) {
			t.Errorf("the write that the %s guards ended with %v", what, err)
		}
		entry, err := config.GetLinearizable(t.Context(), "guard/"+what)
		must(t, err)
		if string(entry.Value) != value {
			t.Errorf("the key whose write the %s guards was written %s", what, entry.Value)
		}
	}
}

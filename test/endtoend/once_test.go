package endtoend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func TestAnAttemptOutlivesItsSidecar(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	other, begin := startSidecar(t, with), resuming(t, with)
	killed := begin()
	killed.awaitReady(t)
	name, rival := fmt.Sprint("once-", now()), other.client(t)
	resumed, queued, told := make(chan struct{}, 16), make(chan struct{}, 16), make(chan error, 1)
	held, err := killed.client(t).Begin(t.Context(), name, "k", sidekeeperclient.OnceOptions{OnResumed: func() { resumed <- struct{}{} }})
	must(t, err)
	go func() {
		_, err := rival.Begin(context.Background(), name, "k", sidekeeperclient.OnceOptions{
			OnQueued: func(sidekeeperclient.Queued) { queued <- struct{}{} },
		})
		told <- err
	}()
	await(t, "queued", patient, queued)
	killed.kill()
	fresh := begin()
	await(t, "resumed", patient, resumed)
	if !held.Valid() || len(told) > 0 {
		t.Errorf("held: %v, another was told: %d", held.Err(), len(told))
	}
	must(t, held.Finish(t.Context(), sidekeeperclient.Succeeded, ""))
	if err := <-told; !errors.Is(err, sidekeeperclient.ErrAlreadyDone) {
		t.Errorf("the other is told %v", err)
	}
	fresh.signal(syscall.SIGTERM)
	if code := fresh.awaitExit(t, patient); code != 0 {
		t.Errorf("the sidecar exits with %d", code)
	}
}

// Of each key, callers of four sidecars do the work one at a time, again when it has failed, and not after it has succeeded. One sidecar is
// killed meanwhile, and its callers go on through another.
func TestCallersOfFourSidecarsDoEachKeysWorkOnce(t *testing.T) {
	sidecars := quickSidecars(t, 4)
	name, keys := fmt.Sprint("once-", now()), 24
	type work struct{ inside, attempts, succeeded atomic.Int32 }
	works := make([]work, keys)
	var clients []*sidekeeperclient.Client
	for _, s := range sidecars {
		clients = append(clients, s.client(t))
	}
	do := func(client *sidekeeperclient.Client, key int) error {
		of := &works[key]
		_, err := client.Once(t.Context(), name, fmt.Sprint(key), sidekeeperclient.OnceOptions{PerName: key%2 == 0, MaxAttempts: 100},
			func(ctx context.Context, attempt *sidekeeperclient.Attempt) error {
				if inside := of.inside.Add(1); inside != 1 || of.succeeded.Load() > 0 {
					t.Errorf("key %d: %d are told `begun` at a time, %d have succeeded", key, inside, of.succeeded.Load())
				}
				defer of.inside.Add(-1)
				select {
				case <-time.After(time.Duration(key) * time.Millisecond):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				if of.attempts.Add(1) <= int32(key%3) {
					return errors.New("it has failed")
				}
				return nil
			})
		return err
	}
	var callers sync.WaitGroup
	for i := range 4 * keys {
		callers.Go(func() {
			key, client := i%keys, clients[i/keys]
			for range 100 {
				if err := do(client, key); err == nil {
					works[key].succeeded.Add(1) // done before, or by this very call
					return
				}
				client = clients[1+i%3]
			}
			t.Errorf("key %d: nothing comes of it", key)
		})
	}
	<-after(time.Second)
	sidecars[0].kill()
	callers.Wait()
	for key := range works {
		if attempts := works[key].attempts.Load(); attempts < int32(key%3)+1 {
			t.Errorf("key %d: done after %d attempts", key, attempts)
		}
	}
}

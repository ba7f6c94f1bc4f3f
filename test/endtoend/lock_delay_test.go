package endtoend

import (
	"sync"
	"testing"
	"time"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func TestALostHoldsDelayIsKeptOnARealEnsemble(t *testing.T) {
	e := ensembleOf(t, quickTick)
	brief := quick(e)
	brief.timeout = 4 * time.Second
	a, b := startSidecar(t, brief), startSidecar(t, quick(e))
	const delay = 3 * time.Second
	delayed := sidekeeperclient.LockOptions{LockDelay: delay}
	first, err := a.client(t).Acquire(t.Context(), "delay", delayed)
	must(t, err)
	began := time.Now()
	must(t, first.Release(t.Context()))
	next, err := b.client(t).Acquire(t.Context(), "delay", sidekeeperclient.LockOptions{})
	must(t, err)
	if took := time.Since(began); took >= delay {
		t.Errorf("after a release the next has the lock after %v", took)
	}
	must(t, next.Release(t.Context()))

	if _, err = a.client(t).Acquire(t.Context(), "delay", delayed); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []time.Time // when those were told who were first, and had to wait all the same
	waiting := delayed
	waiting.OnQueued = func(queued sidekeeperclient.Queued) {
		mu.Lock()
		defer mu.Unlock()
		if queued.Position == 0 && queued.LockDelay >= delay {
			told = append(told, time.Now())
		}
	}
	type granted struct {
		lock *sidekeeperclient.Lock
		err  error
	}
	answer := make(chan granted, 1)
	client := b.client(t)
	go func() {
		lock, err := client.Acquire(t.Context(), "delay", waiting)
		answer <- granted{lock, err}
	}()
	a.kill()
	got := <-answer
	must(t, got.err)
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 1 || time.Since(told[0]) < delay*9/10 { // noted a moment after it was told
		t.Errorf("told %v, and granted at %v", told, time.Now())
	}
	must(t, got.lock.Release(t.Context()))
}

package endtoend

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
)

// Workers of four sidecars run what is asked for, one run at a time, and each that succeeds once. One sidecar is killed meanwhile, and its
// workers go on through another.
func TestWorkersOfFourSidecarsBeginEachRunOnce(t *testing.T) {
	sidecars := quickSidecars(t, 4)
	name, runs := fmt.Sprint("schedule-", now()), 48
	schedules := schedulev1.NewScheduleServiceClient(dial(t, sidecars[3].address()))
	_, err := schedules.Put(t.Context(), &schedulev1.PutRequest{Name: name, Cron: "0 0 29 2 *"})
	must(t, err)

	var mu sync.Mutex
	inside, succeeded := 0, map[string]int{}
	done := make(chan struct{}, runs)
	work := func(ctx context.Context, client *sidekeeperclient.Client) error {
		tick, err := client.Work(ctx, name, sidekeeperclient.WorkOptions{})
		if err != nil {
			return err
		}
		mu.Lock()
		if inside++; inside != 1 || succeeded[tick.RunID()] > 0 {
			t.Errorf("%s: %d work at a time, and it has succeeded %d times", tick.RunID(), inside, succeeded[tick.RunID()])
		}
		mu.Unlock()
		lost := false
		select {
		case <-time.After(5 * time.Millisecond):
		case <-tick.Done():
			lost = true
		}
		mu.Lock()
		inside--
		if !lost { // before Finish, which another caller may hear of sooner than this one
			succeeded[tick.RunID()]++
		}
		mu.Unlock()
		if lost {
			return tick.Release(context.Background())
		}
		finishing, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		err = tick.Finish(finishing, sidekeeperclient.Succeeded, "")
		mu.Lock()
		defer mu.Unlock()
		if err != nil { // it may be repeated
			succeeded[tick.RunID()]--
			return err
		}
		done <- struct{}{}
		return nil
	}
	working, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for i := range 8 {
		client, spare := sidecars[i%4].client(t), sidecars[1+i%3].client(t)
		workers.Go(func() {
			for working.Err() == nil {
				if work(working, client) != nil {
					client = spare
				}
			}
		})
	}
	for i := range runs {
		if i == runs/2 {
			sidecars[0].kill()
		}
		_, err := schedules.Run(t.Context(), &schedulev1.RunRequest{Name: name, Id: fmt.Sprint("run-", i)})
		must(t, err)
		await(t, "a run has succeeded", patient, done)
	}
	stop()
	workers.Wait()
	for i := range runs {
		if id := fmt.Sprint("run-", i); succeeded[id] != 1 {
			t.Errorf("%s has succeeded %d times", id, succeeded[id])
		}
	}
}

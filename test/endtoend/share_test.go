package endtoend

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
)

// A member of a set outlives the death of its sidecar with its items: their handlers go on. When the member leaves, another one works on them.
func TestAMemberOfASetOutlivesItsSidecar(t *testing.T) {
	with := quick(ensembleOf(t, quickTick))
	with.timeout = 6 * time.Second
	other, begin := startSidecar(t, with), resuming(t, with)
	killed := begin()
	killed.awaitReady(t)
	set := fmt.Sprint("shares-", now())
	sets := assignmentv1.NewAssignmentServiceClient(dial(t, other.address()))
	_, err := sets.Define(t.Context(), &assignmentv1.DefineRequest{Set: set, Count: 2})
	must(t, err)
	works, stops, resumed := make(chan struct{}, 16), make(chan struct{}, 16), make(chan struct{}, 16)
	share := func(client *sidekeeperclient.Client, member string, options sidekeeperclient.ShareOptions) (leave func()) {
		ctx, stop := context.WithCancel(context.Background())
		over := make(chan error, 1)
		options.Member = member
		go func() {
			over <- client.Share(ctx, set, func(ctx context.Context, _ *sidekeeperclient.Item) error {
				works <- struct{}{}
				<-ctx.Done()
				stops <- struct{}{}
				return nil
			}, options)
		}()
		return func() {
			stop()
			if err := <-over; !errors.Is(err, context.Canceled) {
				t.Errorf("%s ends with %v", member, err)
			}
		}
	}
	leaves := share(killed.client(t), "a", sidekeeperclient.ShareOptions{OnResumed: func() { resumed <- struct{}{} }})
	await(t, "a works", patient, works)
	await(t, "a works", patient, works)

	killed.kill()
	fresh := begin()
	await(t, "resumed", patient, resumed)
	follows := share(other.client(t), "b", sidekeeperclient.ShareOptions{})
	await(t, "a gives up an item", patient, stops)
	await(t, "b works", patient, works)
	leaves()
	await(t, "a gives up the other item", patient, stops)
	await(t, "b works", patient, works)
	if len(works) > 0 || len(stops) > 0 {
		t.Errorf("more has begun or ended than has moved: %d, %d", len(works), len(stops))
	}
	follows()
	fresh.signal(syscall.SIGTERM)
	if code := fresh.awaitExit(t, patient); code != 0 {
		t.Errorf("the sidecar exits with %d", code)
	}
}

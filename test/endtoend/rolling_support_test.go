package endtoend

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// A routine is one kind of call that is made over and over, with what came of it.
type routine struct {
	call    func(context.Context) error
	working sync.WaitGroup

	mu      sync.Mutex
	done    int
	refused map[string]int // by what was told
	longest time.Duration  // between two calls that were answered as they should
	last    moment
}

// repeatedly makes a call until ctx ends, with a pause in between.
func repeatedly(ctx context.Context, pause time.Duration, call func(context.Context) error) *routine {
	r := &routine{call: call, refused: map[string]int{}, last: now()}
	r.working.Go(func() {
		for ctx.Err() == nil {
			if err := r.call(ctx); ctx.Err() == nil {
				r.note(err)
			}
			<-after(pause)
		}
	})
	return r
}

func (r *routine) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.refused[told(err)]++
		return
	}
	at := now()
	r.longest, r.last = max(r.longest, at.since(r.last)), at
	r.done++
}

// take says what has come of the calls since the last time.
func (r *routine) take() (longest time.Duration, refused string, done int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	longest, done = max(r.longest, now().since(r.last)), r.done
	var words []string
	for _, what := range slices.Sorted(maps.Keys(r.refused)) {
		words = append(words, fmt.Sprint(r.refused[what], " × ", what))
	}
	r.longest, r.done, r.refused = 0, 0, map[string]int{}
	return longest, strings.Join(words, ", "), done
}

// A numbering is all numbers of one sequence that anybody was given.
type numbering struct {
	name string

	mu    sync.Mutex
	given map[int64]bool
	wrong []string
}

// through takes the numbers of one sidecar with bare stubs.
func (n *numbering) through(s *sidecar) func(context.Context) error {
	sequences := s.sequences()
	return n.each(func(ctx context.Context) (int64, error) {
		response, err := sequences.Next(ctx, &sequencev1.NextRequest{Name: n.name})
		return response.GetFirst(), err
	})
}

// each takes numbers, each of which must be larger than the one before.
func (n *numbering) each(next func(context.Context) (int64, error)) func(context.Context) error {
	last := int64(0)
	return func(ctx context.Context) error {
		number, err := next(ctx)
		if err != nil {
			return err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.given[number] || number <= last {
			n.wrong = append(n.wrong, fmt.Sprintf("%d after %d, given before: %t", number, last, n.given[number]))
		}
		n.given[number], last = true, number
		return nil
	}
}

// locking takes a free lock and gives it back.
func locking(s *sidecar, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := s.locks.Acquire(ctx, &lockv1.AcquireRequest{Name: name})
		if err != nil {
			return err
		}
		for {
			event, err := stream.Recv()
			if err != nil {
				return err
			}
			if isGranted(event) {
				_, err := s.locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: event.GetGranted().GetHoldId()})
				return err
			}
		}
	}
}

// lasting opens a lease that lives for as long as the test, with a ttl of its own.
func (s *sidecar) lasting(t *testing.T, ttl time.Duration) (id string) {
	t.Helper()
	stream, err := s.leases.Open(t.Context(), &leasev1.OpenRequest{Ttl: durationpb.New(ttl)})
	must(t, err)
	event, err := stream.Recv()
	must(t, err)
	return event.GetOpened().GetLeaseId()
}

func on(lease string) func(*lockv1.AcquireRequest) {
	return func(r *lockv1.AcquireRequest) { r.LeaseId = lease }
}

// suspensions are how often a caller was told that its lock is suspended, and for how long at most.
func (c *contender) suspensions() (count int, longest time.Duration) {
	var began moment
	suspended := false
	for _, seen := range c.events.all() {
		switch {
		case seen.what.GetSuspended() != nil && !suspended:
			suspended, began = true, seen.at
			count++
		case seen.what.GetResumed() != nil:
			suspended, longest = false, max(longest, seen.at.since(began))
		}
	}
	return count, longest
}

// gauge reads one value from the sidecar's metrics.
func (s *sidecar) gauge(t *testing.T, name string) float64 {
	t.Helper()
	path := strings.TrimPrefix(s.metricsAddress(), "unix://")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	client := &http.Client{Timeout: patient, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	response, err := client.Get("http://sidecar/metrics")
	must(t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	must(t, err)
	for line := range strings.Lines(string(page)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			must(t, err)
			return value
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

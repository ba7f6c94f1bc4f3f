package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// Neighbors are the other callers of a sidecar: they hold locks all the time, take and release others, check, write, connect anew and
// probe, and note how long that takes and what goes wrong.
type neighbors struct {
	name       string
	config     *tls.Config
	calls      string
	metrics    string
	connection *grpc.ClientConn
	lease      string
	held       []string

	mu     sync.Mutex
	took   map[string][]time.Duration
	wrong  map[string]int
	ending bool
	held2  sync.WaitGroup
	stop   context.CancelFunc
}

// What neighbors do, as the table calls it.
const (
	lockPair   = "lock pair"
	check      = "Check"
	put        = "Put"
	newcomer   = "new connection"
	probe      = "probe"
	holdsOfOne = 8
	callLimit  = 10 * time.Second
)

// settle opens the neighbors' connection, lease and holds.
func settle(ctx context.Context, name string, on victim) (*neighbors, error) {
	config, err := papersOf(on.Papers, "others")
	if err != nil {
		return nil, err
	}
	n := &neighbors{name: name, config: config, calls: on.Calls, metrics: on.Metrics, took: map[string][]time.Duration{}, wrong: map[string]int{}}
	if n.connection, err = n.dial(); err != nil {
		return nil, err
	}
	ctx, n.stop = context.WithCancel(ctx)
	if n.lease, _, err = beginLease(ctx, n.connection); err != nil {
		return nil, err
	}
	for i := range holdsOfOne {
		if err := n.hold(ctx, fmt.Sprintf("neighbors/%s/held-%d", name, i)); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *neighbors) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient(n.calls, grpc.WithTransportCredentials(credentials.NewTLS(n.config)))
}

// hold takes a lock and notes if it ends before the neighbors leave.
func (n *neighbors) hold(ctx context.Context, name string) error {
	c := &sidecarCaller{connection: n.connection, locks: lockv1.NewLockServiceClient(n.connection), lease: n.lease}
	if err := c.lock(ctx, name); err != nil {
		return err
	}
	n.held = append(n.held, c.hold)
	n.held2.Go(func() {
		err := error(nil)
		for err == nil {
			_, err = c.stream.Recv()
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.ending {
			n.wrong["a hold ended: "+reasonOf(err)]++
		}
	})
	return nil
}

func (n *neighbors) leave() {
	n.mu.Lock()
	n.ending = true
	n.mu.Unlock()
	n.stop()
	n.connection.Close()
	n.held2.Wait()
}

// do notes how long something took, or why it failed.
func (n *neighbors) do(ctx context.Context, what string, do func(context.Context) error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	began := time.Now()
	err := do(limited)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.took[what] = append(n.took[what], time.Since(began))
	if err != nil {
		n.wrong[what+": "+reasonOf(err)]++
	}
}

// live goes about what neighbors do until ctx ends.
func (n *neighbors) live(ctx context.Context) {
	var all sync.WaitGroup
	each := func(what string, at int, rest time.Duration, do func(ctx context.Context, worker int) error) {
		all.Go(func() {
			again(ctx, at, rest, func(worker int) {
				n.do(ctx, what, func(ctx context.Context) error { return do(ctx, worker) })
			})
		})
	}
	each(lockPair, 4, 10*time.Millisecond, n.pair)
	each(check, 2, 5*time.Millisecond, func(ctx context.Context, _ int) error { return n.check(ctx, n.connection) })
	each(put, 1, 50*time.Millisecond, n.put)
	each(newcomer, 1, 50*time.Millisecond, n.connect)
	each(probe, 1, 200*time.Millisecond, n.probe)
	all.Wait()
}

func (n *neighbors) pair(ctx context.Context, worker int) error {
	c := &sidecarCaller{connection: n.connection, locks: lockv1.NewLockServiceClient(n.connection), lease: n.lease}
	if err := c.lock(ctx, fmt.Sprintf("neighbors/%s/%d", n.name, worker)); err != nil {
		return err
	}
	return c.unlock(ctx)
}

var errNotValid = errors.New("a hold is not valid")

func (n *neighbors) check(ctx context.Context, over *grpc.ClientConn) error {
	answer, err := lockv1.NewLockServiceClient(over).Check(ctx, &lockv1.CheckRequest{HoldIds: n.held})
	if err != nil {
		return err
	}
	for _, hold := range answer.GetHolds() {
		if hold.GetValidFor().AsDuration() <= 0 {
			return errNotValid
		}
	}
	return nil
}

func (n *neighbors) put(ctx context.Context, _ int) error {
	_, err := configv1.NewConfigServiceClient(n.connection).Put(ctx, &configv1.PutRequest{
		Key: "neighbors/" + n.name, Content: &configv1.PutRequest_Value{Value: []byte(time.Now().String())},
	})
	return err
}

// connect is of a caller that comes now, as gRPC's clients do: who is refused tries again.
func (n *neighbors) connect(ctx context.Context, _ int) error {
	connection, err := n.dial()
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = lockv1.NewLockServiceClient(connection).Check(ctx, &lockv1.CheckRequest{HoldIds: n.held}, grpc.WaitForReady(true))
	return err
}

// probe is the kubelet's.
func (n *neighbors) probe(ctx context.Context, _ int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.metrics+"/healthz", http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

func reasonOf(err error) string {
	if status.Code(err) == codes.Unknown {
		return err.Error()
	}
	return strings.TrimSpace(status.Code(err).String() + " " + status.Convert(err).Message())
}

// complaints are what went wrong, and how often.
func (n *neighbors) complaints() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(n.wrong)) {
		all = append(all, fmt.Sprintf("%s: %d × %s", n.name, n.wrong[what], what))
	}
	return all
}

var _ = metadata.MD{}

//go:build kube

package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// shopVariable makes this program the one in the image of the shop.
const shopVariable = "KUBE_TEST_SHOP"

// shop is what the containers of the example run. What happens to them they write down, line by line.
func shop(arguments []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if len(arguments) == 1 && arguments[0] == "statistics" {
		<-ctx.Done() // it calls no sidecar
		return 0
	}
	client, err := sidekeeper.Dial("") // where SIDEKEEPER_ADDRESS says
	if err == nil {
		if len(arguments) == 1 && arguments[0] == "migrate" {
			err = client.WithLock(ctx, "migration", sidekeeper.LockOptions{}, func(context.Context, *sidekeeper.Lock) error { return nil })
		} else {
			err = (&web{client: client}).serve(ctx)
		}
		err = errors.Join(err, client.Close())
	}
	if err != nil {
		sayf("failed: %v", err)
		return 1
	}
	return 0
}

func sayf(format string, arguments ...any) { fmt.Fprintf(os.Stdout, format+"\n", arguments...) }

// A web holds the lock orders, is the member web of the group shops, and waits for the lock reports.
type web struct {
	client  *sidekeeper.Client
	working sync.WaitGroup
}

func (w *web) serve(ctx context.Context) error {
	defer w.working.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var orders, member pause
	lock, err := w.client.Acquire(ctx, "orders", sidekeeper.LockOptions{
		Owner: "web", OnSuspended: orders.begin, OnResumed: func() { orders.end("orders") },
	})
	if err != nil {
		return err
	}
	sayf("holds orders with token %d", lock.FencingToken())
	joined, err := w.client.Join(ctx, "shops", "web", sidekeeper.JoinOptions{
		OnSuspended: member.begin, OnResumed: func() { member.end("shops") },
	})
	if err != nil {
		return err
	}
	w.working.Go(func() { w.ask(ctx) })
	w.working.Go(func() { w.wait(ctx) })
	select {
	case <-lock.Done():
		return lock.Err()
	case <-joined.Done():
		return joined.Err()
	case <-ctx.Done():
	}
	sayf("still holds orders with token %d: %t", lock.FencingToken(), lock.Valid() && joined.Valid())
	return errors.Join(joined.Leave(context.WithoutCancel(ctx)), lock.Release(context.WithoutCancel(ctx)))
}

// wait waits for the lock reports, and releases it in the end.
func (w *web) wait(ctx context.Context) {
	lock, err := w.client.Acquire(ctx, "reports", sidekeeper.LockOptions{
		Owner: "web", OnQueued: func(sidekeeper.Queued) { sayf("waits for reports") },
	})
	if err != nil {
		sayf("does not get reports: %v", err)
		return
	}
	sayf("holds reports with token %d", lock.FencingToken())
	<-ctx.Done()
	if err := lock.Release(context.WithoutCancel(ctx)); err != nil {
		sayf("does not release reports: %v", err)
	}
}

// ask asks one question after the other, and writes down for which answer it has waited longest.
func (w *web) ask(ctx context.Context) {
	for longest := 100 * time.Millisecond; ctx.Err() == nil; {
		asked := time.Now()
		_, err := w.client.Get(ctx, "orders")
		if took := time.Since(asked); took > longest {
			longest = took
			sayf("has waited %v for an answer", took.Round(time.Millisecond))
		}
		if err != nil && ctx.Err() == nil {
			sayf("gets no answer: %v", err)
		}
	}
}

// A pause is for how long a claim is suspended.
type pause struct{ since time.Time }

func (p *pause) begin(time.Duration) {
	if p.since.IsZero() {
		p.since = time.Now()
	}
}

func (p *pause) end(of string) {
	sayf("has %s again after %v", of, time.Since(p.since).Round(time.Millisecond))
	p.since = time.Time{}
}

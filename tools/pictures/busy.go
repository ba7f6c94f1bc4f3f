package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// busy has callers come and go for that long, so that the last hour has something to show, and then two of them wait for each other.
func (s *scene) busy(ctx context.Context, long time.Duration) error {
	client, err := sidekeeper.Dial(s.address)
	if err != nil {
		return err
	}
	s.client = client
	stop, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for i := range 6 {
		go func() {
			for stop.Err() == nil {
				if held, err := client.Acquire(stop, "mail/outbox", sidekeeper.LockOptions{Owner: fmt.Sprintf("mailer-%d", i)}); err == nil {
					pause(stop, 5*time.Second)
					_ = held.Release(ctx)
				}
				pause(stop, 40*time.Second)
			}
		}()
	}
	<-stop.Done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.circle(ctx)
}

// pause takes up to that long.
func pause(ctx context.Context, most time.Duration) {
	select {
	case <-time.After(rand.N(most)):
	case <-ctx.Done():
	}
}

// circle has two callers wait for each other.
func (s *scene) circle(ctx context.Context) error {
	callers, locks := [2]string{"checkout-2", "refunds-1"}, [2]string{"stock/17", "payments/17"}
	leases := [2]*sidekeeper.Lease{}
	for i, owner := range callers {
		lease, err := s.client.OpenLease(ctx, sidekeeper.LeaseOptions{Owner: owner})
		if err != nil {
			return err
		}
		if _, err := s.client.Acquire(ctx, locks[i], sidekeeper.LockOptions{Lease: lease, Owner: owner}); err != nil {
			return err
		}
		leases[i] = lease
	}
	for i, owner := range callers {
		go func() {
			_, _ = s.client.Acquire(ctx, locks[1-i], sidekeeper.LockOptions{Lease: leases[i], Owner: owner})
		}()
	}
	return s.shows(ctx, `"waiters":4`)
}

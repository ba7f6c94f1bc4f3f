package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
)

// tombstoneTime is how long the last operation may take at each sidecar, apart from what leases may have to run out.
const tombstoneTime = 20 * time.Second

// entomb does one of everything at each sidecar, again and again until it works. If it does not in time, now that all faults
// are over, the round shows nothing but that.
func (r *round) entomb(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.plan.timeout+tombstoneTime)
	defer cancel()
	event := history.Event{Kind: history.Tombstone, Outcome: history.OK}
	for _, host := range r.stage.Hosts {
		if err := r.entombAt(ctx, host); err != nil {
			event.Outcome, event.Target, event.Reason = history.Unknown, host.Target(), err.Error()
			r.invalidatef("the last operation at %s: %v", host.Target(), err)
			r.broken = true
		}
	}
	r.conductor.Append(event)
}

func (r *round) entombAt(ctx context.Context, host *stage.Host) error {
	client, err := sidekeeper.Dial(host.Address())
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		err := r.oneOfEverything(ctx, client, host)
		if err == nil || !stage.Pause(ctx, glance) {
			return err
		}
	}
}

// oneOfEverything may be done again when it has failed.
func (r *round) oneOfEverything(ctx context.Context, client *sidekeeper.Client, host *stage.Host) error {
	lock, err := client.Acquire(ctx, r.prefix()+"/tombstone", sidekeeper.LockOptions{})
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%s/tombstone/%d", r.prefix(), host.Number)
	_, err = client.Config().Put(ctx, key, []byte(host.Target()))
	if released := lock.Release(ctx); err == nil {
		err = released
	}
	if err != nil {
		return err
	}
	_, err = client.Config().GetLinearizable(ctx, key)
	return err
}

package supervise

import (
	"context"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// An Item is the claim of a command that works on an item of a set. Its lock is held before the command is run.
type Item struct {
	Item      *sidekeeper.Item
	Working   context.Context //nolint:containedctx // ends when the item moves, or the work is to end for another reason
	KillGrace time.Duration   // after SIGTERM the command gets SIGKILL

	holding
}

func (i *Item) take(_ context.Context, r *Runner) error {
	if i.Working.Err() != nil {
		return context.Cause(i.Working)
	}
	i.holding = hold(r, i.Item.Lock, "lock "+i.lockName(), 0, false)
	return nil
}

func (i *Item) lockName() string { return i.Item.Set() + "/" + i.Item.Name() }

func (i *Item) environment() []string {
	lock := Lock{Name: i.lockName(), held: i.Item.Lock}
	return append(lock.environment(), "SIDEKEEPER_SET="+i.Item.Set(), "SIDEKEEPER_ITEM="+i.Item.Name())
}

// watch ends the command also when its work is to end.
func (i *Item) watch(ctx context.Context, child *Child) {
	var moving sync.WaitGroup
	defer moving.Wait()
	moving.Go(func() {
		select {
		case <-i.Working.Done():
		case <-ctx.Done():
			return
		}
		child.Terminate()
		select {
		case <-time.After(i.KillGrace):
			child.Kill(KillTime)
		case <-ctx.Done():
		}
	})
	i.holding.watch(ctx, child)
}

// release leaves the lock to sidekeeper.Share, which releases it when the command has ended.
func (i *Item) release(context.Context) error { return i.Item.Err() }

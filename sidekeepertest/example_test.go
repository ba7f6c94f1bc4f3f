package sidekeepertest_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// In a test, Start does what New and Close do here.
func Example() {
	sidecar, err := sidekeepertest.New(sidekeepertest.Options{})
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	defer sidecar.Close()

	ctx := context.Background()
	err = sidecar.Client().WithLock(ctx, "orders", sidekeeper.LockOptions{},
		func(held context.Context, _ *sidekeeper.Lock) error {
			if err := sidecar.ExpireLock(ctx, "orders"); err != nil {
				return err
			}
			<-held.Done() // what works under the lock stops
			return nil
		})
	fmt.Fprintln(os.Stdout, "lost:", errors.Is(err, sidekeeper.ErrLost), "because of", reasonOf(err))
	// Output: lost: true because of LEASE_LOST
}

func reasonOf(err error) string {
	var told *sidekeeper.Error
	if errors.As(err, &told) {
		return told.Reason
	}
	return "nothing that the sidecar said"
}

package embedded

import (
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// excludeEachOther has clients take go-zookeeper's own lock in turn.
func excludeEachOther(t *testing.T, address string) {
	t.Helper()
	const contenders, turns = 4, 10
	var running sync.WaitGroup
	inside, rounds := 0, 0 // behind the lock
	for range contenders {
		c := newGoClient(t, address, 15*time.Second)
		running.Go(func() {
			for range turns {
				lock := zk.NewLock(c.Conn, "/go-zookeeper-locks/orders", zk.WorldACL(zk.PermAll))
				if err := lock.Lock(); err != nil {
					t.Error(err)
					return
				}
				inside++
				if inside != 1 {
					t.Errorf("%d callers inside", inside)
				}
				rounds++
				inside--
				if err := lock.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	if rounds != contenders*turns {
		t.Errorf("%d rounds, want %d", rounds, contenders*turns)
	}
}

package goclient

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func TestTheHolderOfALockLearnsOfAKilledSidecarAtOnce(t *testing.T) {
	program, nursery := buildSidecar(t)
	for range 3 {
		s := newStage(t, program, nursery)
		lock, err := s.client(step{}).Acquire(t.Context(), "orders", sidekeeper.LockOptions{})
		must(t, err)
		killed := time.Now()
		s.sidecar.Kill()
		<-lock.Done()
		t.Logf("the holder of a lock learns of a killed sidecar after %v", time.Since(killed))
		if lock.Valid() || lock.Err() == nil {
			t.Errorf("it is still valid, or not lost: %v", lock.Err())
		}
	}
}

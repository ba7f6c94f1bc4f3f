//go:build skew

package goclient

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Barriers came after the sidecar with which `make skew` begins. A sidecar that knows them passes this as well.
func TestAnOlderSidecarSaysThatItDoesNotKnowWhatIsNewer(t *testing.T) {
	program, nursery := buildSidecar(t)
	s := newStage(t, program, nursery)
	client := s.client(step{})
	lock, err := client.Acquire(t.Context(), "orders", sidekeeper.LockOptions{})
	must(t, err)
	setting := client.SetBarrier(t.Context(), "migration")
	if told, is := errors.AsType[*sidekeeper.Error](setting); setting != nil && (!is || told.Code != codes.Unimplemented) {
		t.Errorf("set: %v", setting)
	}
	_, entering := client.EnterBarrier(t.Context(), "load", 1, sidekeeper.BarrierOptions{})
	if (entering == nil) != (setting == nil) {
		t.Errorf("enter: %v", entering)
	}
	if !lock.Valid() {
		t.Error(lock.Err())
	}
	must(t, lock.Release(t.Context()))
}

// It looks inside: how many reads are under way at a time shows in no answer.

package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func TestListLooksIntoManyDirectoriesAtTheSameTime(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprintf("%04d", i)
		}
		const roundTrip = time.Millisecond
		began := time.Now()
		found, err := lookInto(t.Context(), names, func(_ context.Context, at name) (*lockv1.Lock, error) {
			time.Sleep(roundTrip)
			return &lockv1.Lock{Name: at.text}, nil
		})
		if err != nil || len(found) != len(names) || found[999].GetName() != "0999" {
			t.Fatalf("found %d, %v", len(found), err)
		}
		if took := time.Since(began); took > 40*roundTrip {
			t.Errorf("looked into 1000 directories in %v, where a round trip takes %v", took, roundTrip)
		}
	})
}

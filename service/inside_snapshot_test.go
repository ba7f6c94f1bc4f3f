// It looks inside: as many leases by as many calls would take long.

package service

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestOfVeryManyLeasesTheStateListsSome(t *testing.T) {
	t.Parallel()
	services := manyHolders(t, 300)
	state := services.Snapshot()
	same(t, "counted", state.Counts.Leases, 300)
	same(t, "listed", len(state.Leases), 200)
	same(t, "locks listed", len(state.Locks), 200)
}

// manyHolders are services with so many leases, each of which holds a lock.
func manyHolders(tb testing.TB, leases int) *Services {
	tb.Helper()
	memory := standin.New(standin.Options{Tick: time.Second})
	tb.Cleanup(memory.Close)
	services := New(Options{}, memoryEnsemble{memory.NewReader()})
	for i := range leases {
		made, err := services.leases.begin(context.Background(), caller.Caller{Identity: "uid:0"}, recipes.About{Owner: "billing"}, 10*time.Second)
		if err != nil {
			tb.Fatal(err)
		}
		lock := resource{kindLock, fmt.Sprint("lock-", i)}
		made.begin([]resource{lock}, nil)
		made.has([]resource{lock}, int64(i))
	}
	return services
}

// What a look costs while somebody looks, once in a second.
func BenchmarkStateOfAThousandLeases(b *testing.B) {
	services := manyHolders(b, 1000)
	for b.Loop() {
		if _, err := json.Marshal(services.Snapshot()); err != nil {
			b.Fatal(err)
		}
	}
}

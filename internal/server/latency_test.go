// It looks inside: the estimate of a quantile is told to people as a number alone, too coarse to see a fault of it.

package server

import (
	"slices"
	"testing"
	"time"
)

func TestQuantilesLieWithinTheBucketsOfTheRequests(t *testing.T) {
	t.Parallel()
	row := make([]uint64, len(shortTimes)+1)
	for i := range row {
		row[i] = 100
	}
	row[0], row[1] = 0, 50 // half within 1 ms, the others within 2 ms
	same(t, "half", quantile(row, 0.5), 0.001)
	same(t, "three quarters", quantile(row, 0.75), 0.0015)
	found := latencies(bucketCounts{"create": row}, bucketCounts{"create": row, "delete": row}, 10*time.Second)
	same(t, "operations", len(found), 1)
	same(t, "rate", found[0].Rate, 10)
	slow := slices.Repeat([]uint64{0}, len(shortTimes))
	same(t, "beyond the last bound", quantile(append(slow, 10), 0.99), shortTimes[len(shortTimes)-1])
}

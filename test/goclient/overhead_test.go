package goclient

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// inARow is how often something is done before the other way has its turn.
const inARow = 30

// BenchmarkOverhead does the same through the client and through bare stubs, in turns, with a real sidecar.
func BenchmarkOverhead(b *testing.B) {
	program, nursery := buildSidecar(b)
	s := newStage(b, program, nursery)
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(b, err)
	b.Cleanup(func() { connection.Close() })
	client := s.client(step{})
	locks, sequences := lockv1.NewLockServiceClient(connection), sequencev1.NewSequenceServiceClient(connection)
	numbers := client.Sequence("numbers")
	_, err = numbers.Create(b.Context(), 1)
	must(b, err)

	b.Run("lock and release", func(b *testing.B) {
		compare(b,
			func() error { return lockBare(b.Context(), locks) },
			func() error {
				lock, err := client.Acquire(b.Context(), "orders", sidekeeper.LockOptions{})
				if err != nil {
					return err
				}
				return lock.Release(b.Context())
			})
	})
	b.Run("number", func(b *testing.B) {
		compare(b,
			func() error {
				_, err := sequences.Next(b.Context(), &sequencev1.NextRequest{Name: "numbers"})
				return err
			},
			func() error {
				_, err := numbers.Next(b.Context())
				return err
			})
	})
}

// lockBare acquires a lock and releases it.
func lockBare(ctx context.Context, locks lockv1.LockServiceClient) error {
	stream, err := locks.Acquire(ctx, &lockv1.AcquireRequest{Name: "orders"})
	if err != nil {
		return err
	}
	var id string
	for id == "" {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		id = answer.GetGranted().GetHoldId()
	}
	_, err = locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: id})
	return err
}

// compare reports the medians of both, in microseconds, and the median of the rounds' ratios.
func compare(b *testing.B, bare, client func() error) {
	b.Helper()
	var times [2][]float64
	var ratios []float64
	for round := 0; b.Loop(); round++ {
		var medians [2]float64
		for turn := range 2 {
			way := (round + turn) % 2 // who begins changes
			medians[way] = inTurn(b, [2]func() error{bare, client}[way])
			times[way] = append(times[way], medians[way])
		}
		ratios = append(ratios, medians[1]/medians[0])
	}
	b.ReportMetric(median(times[0]), "bare-µs")
	b.ReportMetric(median(times[1]), "client-µs")
	b.ReportMetric(median(ratios), "ratio")
}

// inTurn is the median of the microseconds that it takes.
func inTurn(b *testing.B, do func() error) float64 {
	b.Helper()
	took := make([]float64, inARow)
	for i := range took {
		began := time.Now()
		must(b, do())
		took[i] = float64(time.Since(began)) / float64(time.Microsecond)
	}
	return median(took)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

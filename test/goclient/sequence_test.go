package goclient

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

func TestASequenceIsMadeUsedAndDeleted(t *testing.T) {
	client := sidekeepertest.Start(t, sidekeepertest.Options{}).Client()
	orders := client.Sequence("orders")
	if _, err := orders.Next(t.Context()); !errors.Is(err, sidekeeper.ErrSequenceNotFound) {
		t.Errorf("before it is made: %v", err)
	}
	incarnation, err := orders.Create(t.Context(), 100)
	if err != nil || incarnation == 0 {
		t.Fatal(incarnation, err)
	}
	if _, err := orders.Create(t.Context(), 1); !errors.Is(err, sidekeeper.ErrSequenceExists) {
		t.Errorf("again: %v", err)
	}
	if number, err := orders.Next(t.Context()); err != nil || number != 100 {
		t.Errorf("next: %d, %v", number, err)
	}
	numbers, err := orders.NextRange(t.Context(), 5)
	if got := slices.Collect(numbers.All()); err != nil || !slices.Equal(got, []int64{101, 102, 103, 104, 105}) ||
		numbers.Incarnation != incarnation {
		t.Errorf("range: %v of %+v, %v", got, numbers, err)
	}
	want := sidekeeper.SequenceState{LastIssued: 500, Incarnation: incarnation}
	if state, err := orders.AdvanceTo(t.Context(), 500); err != nil || state != want {
		t.Errorf("advance: %+v, %v", state, err)
	}
	if number, err := orders.Relaxed().Next(t.Context()); err != nil || number != 501 {
		t.Errorf("relaxed: %d, %v", number, err)
	}
	if state, err := orders.Get(t.Context()); err != nil || state.LastIssued < 501 {
		t.Errorf("get: %+v, %v", state, err)
	}
	if err := orders.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	for _, err := range []error{orders.Delete(t.Context()), second(orders.Get(t.Context())), second(orders.AdvanceTo(t.Context(), 1))} {
		if !errors.Is(err, sidekeeper.ErrSequenceNotFound) {
			t.Errorf("deleted: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestTooManyNumbersAndTooFewLeftAreRefused(t *testing.T) {
	client := sidekeepertest.Start(t, sidekeepertest.Options{}).Client()
	last := client.Sequence("last")
	if _, err := last.Create(t.Context(), math.MaxInt64-1); err != nil {
		t.Fatal(err)
	}
	for _, count := range []int32{0, -1, 1000001} {
		if _, err := last.NextRange(t.Context(), count); !errors.Is(err, sidekeeper.ErrInvalidField) {
			t.Errorf("%d: %v", count, err)
		}
	}
	if _, err := last.NextRange(t.Context(), 3); !errors.Is(err, sidekeeper.ErrSequenceExhausted) {
		t.Errorf("three: %v", err)
	}
	numbers, err := last.NextRange(t.Context(), 2)
	if got := slices.Collect(numbers.All()); err != nil || !slices.Equal(got, []int64{math.MaxInt64 - 1, math.MaxInt64}) {
		t.Errorf("two: %v, %v", got, err)
	}
}

func TestSequencesAreListedThroughAllPages(t *testing.T) {
	client := sidekeepertest.Start(t, sidekeepertest.Options{}).Client()
	for n := range 1005 {
		if _, err := client.Sequence(fmt.Sprintf("shop/%04d", n)).Create(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for sequence, err := range client.Sequences(t.Context(), "shop") {
		if want := fmt.Sprintf("shop/%04d", seen); err != nil || sequence.Name != want {
			t.Fatalf("%v, %v; want %s", sequence, err, want)
		}
		seen++
	}
	if seen != 1005 {
		t.Errorf("%d are listed", seen)
	}
}

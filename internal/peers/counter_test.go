package peers

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	sidekeeper "github.com/sidekeeper/sidekeeper/clients/go"
)

const sequenceRoot = "/sidekeeper/sequences/"

// taken reads the numbers that a peer says it has counted to.
func taken(t *testing.T, answer string) (numbers []int64) {
	t.Helper()
	for word := range strings.FieldsSeq(answer) {
		number, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			t.Fatalf("it took %q", answer)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

func wantTaken(t *testing.T, who string, got []int64, want ...int64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s has got %v, want %v", who, got, want)
	}
}

// take takes numbers one at a time.
func take(t *testing.T, from *sidekeeper.Sequence, count int) (numbers []int64) {
	t.Helper()
	for range count {
		number, err := from.Next(t.Context())
		must(t, err)
		numbers = append(numbers, number)
	}
	return numbers
}

func TestACounterOfCuratorAndASequenceAreTheSame(t *testing.T) {
	sidecar, servers := startSidecar(t)
	curator := startProgram(t, javaCommand(t, "Counter", servers))
	for _, first := range []string{"curator", "sidekeeper"} {
		t.Run(first+" first", func(t *testing.T) {
			path, sequence := sequenceRoot+first, sidecar.Client().Sequence(first)
			if first == "sidekeeper" {
				_, err := sequence.Create(t.Context(), 1)
				must(t, err)
				wantTaken(t, "sidekeeper", take(t, sequence, 3), 1, 2, 3)
			} else {
				wantTaken(t, "curator", taken(t, curator.tell(t, "take", path, 3)), 1, 2, 3)
			}
			wantTaken(t, "sidekeeper", take(t, sequence, 2), 4, 5)
			wantTaken(t, "curator", taken(t, curator.tell(t, "take", path, 2)), 6, 7)
			wantTaken(t, "sidekeeper", take(t, sequence, 1), 8)
			expect(t, curator, "set", "set", path, -3)
			wantTaken(t, "sidekeeper", take(t, sequence, 2), -2, -1)
			wantTaken(t, "curator", taken(t, curator.tell(t, "take", path, 1)), 0)
		})
	}
}

func TestCuratorAndSidekeeperContendForNumbers(t *testing.T) {
	sidecar, servers := startSidecar(t)
	path, sequence := sequenceRoot+"contended", sidecar.Client().Sequence("contended")
	_, err := sequence.Create(t.Context(), 1)
	must(t, err)
	const counters, each, callers = 2, 100, 4
	baskets := make([][]int64, counters+callers)
	var group errgroup.Group
	for i := range counters {
		curator := startProgram(t, javaCommand(t, "Counter", servers))
		group.Go(func() error {
			baskets[i] = taken(t, curator.tell(t, "take", path, each))
			return nil
		})
	}
	for i := range callers {
		group.Go(func() error {
			for range each {
				number, err := sequence.Next(t.Context())
				if err != nil {
					return err
				}
				baskets[counters+i] = append(baskets[counters+i], number)
			}
			return nil
		})
	}
	must(t, group.Wait())
	all := slices.Concat(baskets...)
	for i, basket := range baskets {
		if !slices.IsSorted(basket) || len(basket) != each {
			t.Errorf("%d of %d has got %v", i, len(baskets), basket)
		}
	}
	slices.Sort(all)
	if different := slices.Compact(slices.Clone(all)); len(different) != len(all) {
		t.Errorf("%d numbers, %d of them different", len(all), len(different))
	}
	if last := all[len(all)-1]; last != int64(len(all)) {
		t.Errorf("%d numbers were taken, the last is %d", len(all), last)
	}
}

// kazoo's counter stores text, or four bytes where it is told to be like Curator's. Neither side spoils the other's.
func TestACounterOfKazooIsNoSequence(t *testing.T) {
	sidecar, servers := startSidecar(t)
	interpreter, err := python()
	must(t, err)
	for _, option := range []string{"", "curator"} {
		t.Run("kazoo "+option, func(t *testing.T) {
			kazoo := startProgram(t, exec.Command(interpreter, filepath.Join("testdata", "kazoo", "counter.py"), servers, option))
			name := "kazoo" + option
			wantTaken(t, "kazoo", taken(t, kazoo.tell(t, "take", sequenceRoot+name, 2)), 1, 2)
			_, err := sidecar.Client().Sequence(name).Next(t.Context())
			if !errors.Is(err, sidekeeper.ErrSequenceMalformed) {
				t.Errorf("a number of kazoo's counter: %v", err)
			}
			wantTaken(t, "kazoo", taken(t, kazoo.tell(t, "take", sequenceRoot+name, 1)), 3)

			ours := sidecar.Client().Sequence("ours" + option)
			_, err = ours.Create(t.Context(), 1)
			must(t, err)
			wantTaken(t, "sidekeeper", take(t, ours, 1), 1)
			if answer := kazoo.tell(t, "take", sequenceRoot+"ours"+option, 1); !strings.HasPrefix(answer, "failed") {
				t.Errorf("kazoo counts on with %s", answer)
			}
			wantTaken(t, "sidekeeper", take(t, ours, 1), 2)
		})
	}
}

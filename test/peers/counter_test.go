package peers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

const sequenceRoot = "/sidekeeper/sequences/"

// taken reads the numbers that a program says it has counted to.
func taken(answer string) (numbers []int64, err error) {
	for word := range strings.FieldsSeq(answer) {
		number, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, errors.New(answer)
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// take takes numbers one at a time.
func take(ctx context.Context, from *sidekeeper.Sequence, count int) (numbers []int64, err error) {
	for range count {
		number, err := from.Next(ctx)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// wantTaken has a program take numbers, which must be these.
func wantTaken(t *testing.T, from *peer, path string, want ...int64) {
	t.Helper()
	got, err := taken(from.tell(t, "take", path, len(want)))
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("the program has got %v, want %v", got, want)
	}
}

// wantOurs takes numbers of a sequence, which must be these.
func wantOurs(t *testing.T, from *sidekeeper.Sequence, want ...int64) {
	t.Helper()
	got, err := take(t.Context(), from, len(want))
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("the sidecar's caller has got %v, want %v", got, want)
	}
}

func TestACounterOfCuratorAndASequenceAreTheSame(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		countInTurn(t, s.client(t), startProgram(t, javaCommand(t, "Counter", s.joined())))
	})
}

func countInTurn(t *testing.T, client *sidekeeper.Client, curator *peer) {
	t.Helper()
	for _, first := range []string{"curator", "sidekeeper"} {
		t.Run(first+" first", func(t *testing.T) {
			path, sequence := sequenceRoot+first, client.Sequence(first)
			if first == "sidekeeper" {
				_, err := sequence.Create(t.Context(), 1)
				must(t, err)
				wantOurs(t, sequence, 1, 2, 3)
			} else {
				wantTaken(t, curator, path, 1, 2, 3)
			}
			wantOurs(t, sequence, 4, 5)
			wantTaken(t, curator, path, 6, 7)
			wantOurs(t, sequence, 8)
			expect(t, curator, "set", "set", path, -3)
			wantTaken(t, curator, path, -2)
			wantMalformed(t, sequence) // it would hand out 8 again
			expect(t, curator, "set", "set", path, 8)
			wantOurs(t, sequence, 9)
			wantTaken(t, curator, path, 10)
		})
	}
}

// wantMalformed takes a number of what is no sequence, or not any more.
func wantMalformed(t *testing.T, from *sidekeeper.Sequence) {
	t.Helper()
	if number, err := from.Next(t.Context()); !errors.Is(err, sidekeeper.ErrSequenceMalformed) {
		t.Errorf("the sidecar's caller has got %d, %v", number, err)
	}
}

func TestCuratorAndSidekeeperContendForNumbers(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		const counters, callers = 2, 4
		each := *numbers / (counters + callers)
		began, baskets := time.Now(), contendForNumbers(t, s, counters, callers, each)
		t.Logf("%d numbers in %v", each*len(baskets), time.Since(began))
		for i, basket := range baskets {
			if !slices.IsSorted(basket) || len(basket) != each {
				t.Errorf("%d of %d has got %v", i, len(baskets), basket)
			}
		}
		all := slices.Sorted(slices.Values(slices.Concat(baskets...)))
		if different := slices.Compact(slices.Clone(all)); len(different) != len(all) {
			t.Errorf("%d numbers, %d of them different", len(all), len(different))
		}
		if last := all[len(all)-1]; last != int64(len(all)) {
			t.Errorf("%d numbers were taken, the last is %d", len(all), last)
		}
	})
}

// contendForNumbers has counters of Curator and callers of all sidecars take numbers of one sequence at the same time.
func contendForNumbers(t *testing.T, s stage, counters, callers, each int) (baskets [][]int64) {
	t.Helper()
	_, err := s.client(t).Sequence("contended").Create(t.Context(), 1)
	must(t, err)
	baskets = make([][]int64, counters+callers)
	var group errgroup.Group
	for i := range counters {
		curator := startProgram(t, javaCommand(t, "Counter", s.joined()))
		group.Go(func() error {
			answer, err := curator.order(patience+time.Duration(each)*100*time.Millisecond, "take", sequenceRoot+"contended", each)
			if err == nil {
				baskets[i], err = taken(answer)
			}
			return err
		})
	}
	for i := counters; i < len(baskets); i++ {
		sequence := dial(t, s.sidecars[i%len(s.sidecars)]).Sequence("contended")
		group.Go(func() (err error) {
			baskets[i], err = take(t.Context(), sequence, each)
			return err
		})
	}
	must(t, group.Wait())
	return baskets
}

// kazoo's counter stores text, or four bytes where it is told to be like Curator's. Neither side spoils the other's.
func TestACounterOfKazooIsNoSequence(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		for _, option := range []string{"", "curator"} {
			t.Run("kazoo "+option, func(t *testing.T) {
				kazoo := startProgram(t, pythonCommand(t, "counter.py", s.joined(), option))
				refuseEachOther(t, s.client(t), kazoo, option)
			})
		}
	})
}

func refuseEachOther(t *testing.T, client *sidekeeper.Client, kazoo *peer, option string) {
	t.Helper()
	name := "kazoo" + option
	wantTaken(t, kazoo, sequenceRoot+name, 1, 2)
	wantMalformed(t, client.Sequence(name))
	wantTaken(t, kazoo, sequenceRoot+name, 3)

	ours := client.Sequence("ours" + option)
	_, err := ours.Create(t.Context(), 1)
	must(t, err)
	wantOurs(t, ours, 1)
	if answer := kazoo.tell(t, "take", sequenceRoot+"ours"+option, 1); !strings.HasPrefix(answer, "failed") {
		t.Errorf("kazoo counts on with %s", answer)
	}
	wantOurs(t, ours, 2)
}

// Eight characters are as many bytes as a number of ours has.
func TestACounterOfKazooOfEightCharactersIsNoSequence(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		for _, begin := range []string{"12345677", "-1234569", "0.123456"} {
			kazoo := startProgram(t, pythonCommand(t, "counter.py", s.joined(), begin))
			name := "eight" + begin
			first := kazoo.tell(t, "take", sequenceRoot+name, 1)
			if len(first) != 8 {
				t.Fatalf("kazoo has counted from %s to %s", begin, first)
			}
			wantMalformed(t, s.client(t).Sequence(name))
			if second := kazoo.tell(t, "take", sequenceRoot+name, 1); len(second) != 8 || second == first {
				t.Errorf("after %s, kazoo counts on with %s", first, second)
			}
		}
	})
}

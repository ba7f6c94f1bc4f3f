package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// A worker has a number, until it is lost.
type worker struct {
	number int
	lost   bool
}

func (w *worker) Number() int { return w.number }
func (w *worker) Valid() bool { return !w.lost }

// A machine has a clock that can be set. Virtual time begins before the epoch.
type machine struct{ ahead time.Duration }

func (m *machine) clock() time.Time { return time.Now().AddDate(30, 0, 0).Add(m.ahead) }

func mustMake(t *testing.T, g *generator, want error) int64 {
	t.Helper()
	id, err := g.next(t.Context())
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	return id
}

func TestAGeneratorNeedsANumber(t *testing.T) {
	for _, number := range []int{-1, workers} {
		if _, err := newGenerator(&worker{number: number}, time.Now); !errors.Is(err, errNoNumber) {
			t.Errorf("with %d: %v", number, err)
		}
	}
}

func TestAGeneratorMakesNoIDTwiceAndNoneAfterTheLoss(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		of, on := &worker{number: 7}, &machine{}
		at := time.Now()
		g, err := newGenerator(of, on.clock)
		if err != nil {
			t.Fatal(err)
		}
		last := mustMake(t, g, nil)
		if waited := time.Since(at); waited < tolerance {
			t.Errorf("the first id comes after %v", waited)
		}
		for range 3 * perMoment { // more than a millisecond has
			id := mustMake(t, g, nil)
			if id <= last || id>>sequenceBits%workers != 7 {
				t.Fatalf("%d after %d", id, last)
			}
			last = id
		}
		of.lost = true
		mustMake(t, g, errNumberLost)
	})
}

func TestAClockThatIsSetBackIsOutwaitedOrRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		on := &machine{}
		g, err := newGenerator(&worker{}, on.clock)
		if err != nil {
			t.Fatal(err)
		}
		last := mustMake(t, g, nil)
		on.ahead = -tolerance / 2
		at := time.Now()
		if id := mustMake(t, g, nil); id <= last || time.Since(at) < tolerance/2 {
			t.Errorf("%d after %d and %v", id, last, time.Since(at))
		}
		on.ahead = -time.Hour
		mustMake(t, g, errClockIsBack)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		on.ahead = -tolerance
		if _, err := g.next(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("while it waits: %v", err)
		}
		on.ahead = -100 * 365 * 24 * time.Hour
		mustMake(t, g, errClockIsOff)
	})
}

// The worker whose clock is ahead releases its number, and the next has it at once.
func TestTwoWorkersThatHaveANumberOneAfterTheOtherMakeNoIDTwice(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		before, after := &machine{ahead: tolerance - time.Millisecond}, &machine{}
		first, err := newGenerator(&worker{}, before.clock)
		if err != nil {
			t.Fatal(err)
		}
		last := mustMake(t, first, nil)
		second, err := newGenerator(&worker{}, after.clock)
		if err != nil {
			t.Fatal(err)
		}
		if id := mustMake(t, second, nil); id <= last {
			t.Errorf("%d after %d", id, last)
		}
	})
}

func TestTheProgramMakesIDsUnderANumberAndStopsWhenItIsLost(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	client := sidecar.Client()
	t.Setenv("SIDEKEEPER_ADDRESS", sidecar.Address())
	if err := run(t.Context(), nil, []string{"ids", "1"}); !errors.Is(err, sidekeeper.ErrSemaphoreNotFound) {
		t.Errorf("without a semaphore: %v", err)
	}
	if err := client.CreateSemaphore(t.Context(), "ids", workers); err != nil {
		t.Fatal(err)
	}
	var made bytes.Buffer
	if err := run(t.Context(), &made, []string{"ids", "3"}); err != nil || strings.Count(made.String(), "\n") != 3 {
		t.Errorf("made %q: %v", made.String(), err)
	}
	written := &expiring{sidecar: sidecar, ctx: t.Context()}
	if err := makeIDs(t.Context(), client, "ids", 1<<30, written); !errors.Is(err, errNumberLost) && !errors.Is(err, sidekeeper.ErrLost) {
		t.Errorf("after the loss: %v", err)
	}
}

// An expiring has the number lost once an id is written.
type expiring struct {
	sidecar *sidekeepertest.Sidecar
	ctx     context.Context
	lost    bool
}

func (e *expiring) Write(data []byte) (int, error) {
	if e.lost {
		return len(data), nil
	}
	e.lost = true
	_, err := e.sidecar.ExpireAll(e.ctx)
	return len(data), err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// An id has 41 bits of milliseconds, 10 bits of the worker's number and 12 bits that count within a millisecond.
const (
	numberBits, sequenceBits = 10, 12

	workers     = 1 << numberBits // the semaphore has no more permits
	perMoment   = 1 << sequenceBits
	longestTime = 1<<41 - 1 // 69 years
)

var epoch = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// Why a Generator makes no id.
var (
	errNoNumber    = errors.New("no worker number: acquire the permit with Numbered, of a semaphore with at most 1,024 permits")
	errNumberLost  = errors.New("the worker number is lost")
	errClockIsBack = errors.New("the clock was set back")
	errClockIsOff  = errors.New("the clock shows no time that an id has room for")
)

// A bearer has a worker number, until it is lost: a *sidekeeper.Permits.
type bearer interface {
	Number() int
	Valid() bool
}

// A generator makes ids that are unique over all workers, as long as their clocks differ by less than its tolerance.
type generator struct {
	worker    bearer
	clock     func() time.Time
	tolerance time.Duration

	mu       sync.Mutex
	last     int64 // the millisecond of the last id, or one before which no id is made
	sequence int64 // of the last id, within it
}

// newGenerator makes no id before the tolerance is over: the worker before it, whose clock may be ahead by as much, may have released the same
// number a moment ago.
func newGenerator(worker bearer, clock func() time.Time) (*generator, error) {
	if number := worker.Number(); number < 0 || number >= workers {
		return nil, errNoNumber
	}
	g := &generator{worker: worker, clock: clock, tolerance: tolerance}
	g.last = g.now() + tolerance.Milliseconds()
	return g, nil
}

func (g *generator) now() int64 { return g.clock().Sub(epoch).Milliseconds() }

// next makes an id. It waits out a clock that is behind by no more than the tolerance, and refuses one that was set back further.
func (g *generator) next(ctx context.Context) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		now := g.now()
		behind := time.Duration(g.last-now) * time.Millisecond
		switch {
		case now < 0 || now > longestTime:
			return 0, errClockIsOff
		case behind > g.tolerance:
			return 0, fmt.Errorf("%w by %v", errClockIsBack, behind)
		case behind < 0:
			g.last, g.sequence = now, 0
			return g.made()
		case behind == 0 && g.sequence+1 < perMoment:
			g.sequence++
			return g.made()
		}
		select {
		case <-time.After(max(behind, time.Millisecond)):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// made is the id, if the number is the worker's still. It asks last: a process that was frozen after it had read the clock makes no id.
func (g *generator) made() (int64, error) {
	if !g.worker.Valid() {
		return 0, errNumberLost
	}
	return g.last<<(numberBits+sequenceBits) | int64(g.worker.Number())<<sequenceBits | g.sequence, nil
}

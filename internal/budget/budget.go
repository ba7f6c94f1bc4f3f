// Package budget bounds what one caller may take of a sidecar, and what all may take together: connections, calls, streams, requests that have
// not come, bytes, and what is done in a second.
package budget

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/methods"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
)

// Options are how much there is, and who is told of what is refused.
type Options struct {
	Limits      *caller.Limits // of one caller
	Connections int            // of callers; 0 for any number
	Streams     int            // long-lived, of one connection
	Calls       int            // of one caller, under way
	Memory      int            // bytes in use; 0 for any number
	Complete    time.Duration  // what a request has to come
	Log         *zap.Logger

	May     func(from caller.Caller, method string) error       // whether a caller may make any call of a method
	Reached func(policy.Limit)                                  // is told of each limit that a connection meets
	Refused func(answer *status.Status, reason string)          // is told of each call that is turned away before anything is made for it
	Told    func(ctx context.Context, err error) *status.Status // what the caller is told of an error that no interceptor meets
}

// A Budget is what the callers of one sidecar have together, by identity.
type Budget struct {
	Options
	connections

	operators *account // of all of them, who are bounded in nothing but requests that do not come

	incoming unfinished
	waiting  count // long requests, for their turn
	memory   Memory
	methods  map[string]bool // those there are, and whether they are long-lived streams

	allDecoding *sum // requests with many fields
	allLong     *sum // requests that are longer than a window
	allValues   *sum // bytes on their way from the ensemble
}

// New makes one.
func New(options Options) *Budget {
	b := &Budget{
		Options: options, incoming: newUnfinished(), connections: newConnections(orAny(options.Connections)), memory: NewMemory(options.Memory),
		allDecoding: newSum(mostDecoded), allLong: newSum(MostLong(options.Memory)), allValues: newSum(quarter(options.Memory, mostRead)),
	}
	b.allLong.hurry = b.makeRoom
	b.operators = b.newAccount("")
	return b
}

// Answers keeps them within the memory.
func (b *Budget) Answers() Memory { return b.memory }

// quarter is a quarter of the memory, and something where there is little; any number where nothing bounds it.
func quarter(memory, least int) int {
	if memory == 0 {
		return math.MaxInt
	}
	return max(memory/4, least)
}

// An account is what one caller takes.
type account struct {
	budget   *Budget
	identity string
	open     int // connections; under the lock of all
	arrivals arrivals
	streams  count
	calls    count // under way
	waiting  count // long requests, for their turn

	decoding share
	reads    map[string]*reads // by the method that reads

	visits     *rate.Limiter // connections
	turnedAway *pace
	denials    denialPace

	mu       sync.Mutex
	long     share
	mostLong int
	spent    spending
}

func (b *Budget) newAccount(identity string) *account {
	of := &account{
		budget: b, identity: identity, decoding: share{semaphore.NewWeighted(1), b.allDecoding},
		reads: map[string]*reads{}, visits: rate.NewLimiter(arrivalsPerSecond, arrivalsBurst), turnedAway: newPace(turnedAway, turnedAwayBurst),
		denials: denialPace{events: rate.NewLimiter(writtenDenials, writtenDenialsBurst)},
	}
	for method, first := range methods.Reading {
		of.reads[method] = newReads(first, b.allValues)
	}
	return of
}

// most is how much the caller may have of it.
func (a *account) most(limit policy.Limit) int { return orAny(a.budget.Limits.Of(a.identity, limit)) }

// exceeded is what the caller is told of a limit.
func (a *account) exceeded(limit string, most int) error {
	return service.QuotaExceeded(limit, most, a.identity, 0)
}

// A count is how many there are of something for which no call waits.
type count struct{ atomic.Int64 }

// enter admits one more unless there are most already. What was admitted leaves.
func (c *count) enter(most int) bool {
	if c.Add(1) > int64(most) {
		c.Add(-1)
		return false
	}
	return true
}

func (c *count) leave() { c.Add(-1) }

// A sum is what all callers have of something of which there is only so much.
type sum struct {
	places *semaphore.Weighted
	hurry  func() // makes room for one that waits; nil if that comes by itself
}

func newSum(most int) *sum { return &sum{places: semaphore.NewWeighted(int64(most))} }

// A share is one caller's part of a sum. Who waits for it waits in turn: among the caller's own, then among all.
type share struct {
	own *semaphore.Weighted
	all *sum
}

// acquire takes so much, in its turn. It fails when ctx has ended.
func (s share) acquire(ctx context.Context, number int64) (release func(), err error) {
	if s.own.Acquire(ctx, number) != nil {
		return nil, context.Cause(ctx)
	}
	if s.all.acquire(ctx, number) != nil {
		s.own.Release(number)
		return nil, context.Cause(ctx)
	}
	return func() {
		s.all.places.Release(number)
		s.own.Release(number)
	}, nil
}

func (s *sum) acquire(ctx context.Context, number int64) error {
	switch {
	case s.hurry == nil:
		return s.places.Acquire(ctx, number)
	case s.places.TryAcquire(number):
		return nil
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		looks := time.NewTicker(yields / 5)
		defer looks.Stop()
		for {
			select {
			case <-looks.C:
				s.hurry()
			case <-over:
				return
			}
		}
	}()
	return s.places.Acquire(ctx, number)
}

// orAny is a limit, of which 0 is none.
func orAny(most int) int {
	if most == 0 {
		return math.MaxInt
	}
	return most
}

package sidekeeper

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	never = time.Duration(math.MaxInt64)
	// pauseAfterFailure is how long a keeper lets pass after a question that was not answered.
	pauseAfterFailure = 250 * time.Millisecond
	// shortestPause is the least that passes between two questions.
	shortestPause = 50 * time.Millisecond
	// shortestTimeout is the least that an answer is waited for before it is given up and asked for anew.
	shortestTimeout = 100 * time.Millisecond
)

// An answer says for how long one claim is certainly the caller's, or why it is not.
type answer struct {
	id       string
	validFor time.Duration
	end      error
}

// A keeper keeps the deadlines of all claims of one kind that a client has: it asks for all of them at once, and ends
// those whose validity has run out.
type keeper struct {
	clock clock
	log   *slog.Logger
	ask   func(ctx context.Context, ids []string) ([]answer, error)

	mu      sync.Mutex
	claims  map[string]*claim
	closed  bool            // nothing begins any more
	resting time.Duration   // until when nothing is asked
	news    []chan struct{} // one for each of the two loops
}

func newKeeper(chosen settings, ask func(context.Context, []string) ([]answer, error)) *keeper {
	log := cmp.Or(chosen.log, slog.New(slog.DiscardHandler))
	return &keeper{clock: chosen.clock, log: log, ask: ask, claims: map[string]*claim{}, news: []chan struct{}{
		make(chan struct{}, 1), make(chan struct{}, 1),
	}}
}

// begin asks for a claim's first validity and keeps its deadline from then on. It fails with the claim's end, if that
// comes first, or if there is no answer.
func (k *keeper) begin(id string, c *claim) error {
	sent := k.clock.now()
	answers, err := k.ask(c.context, []string{id})
	if err != nil {
		return err
	}
	k.take(map[string]*claim{id: c}, sent, answers)
	if !c.Valid() {
		c.lose(outlived())
		return context.Cause(c.context)
	}
	if !k.add(id, c) {
		c.lose(errClosed)
		return context.Cause(c.context)
	}
	c.onEnd(func() { k.forget(id) })
	k.tell()
	return nil
}

// add keeps the deadline of a claim, but not any more after close.
func (k *keeper) add(id string, c *claim) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.claims[id] = c
	}
	return !k.closed
}

// close ends all claims.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	for _, c := range k.kept() {
		c.lose(errClosed)
	}
}

// errClosed is why claims end when their client is closed.
var errClosed = &Error{Code: codes.Canceled, Message: "the client is closed"}

// forget is for claims that have ended.
func (k *keeper) forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.claims, id)
}

func (k *keeper) tell() {
	for _, news := range k.news {
		signal(news)
	}
}

func (k *keeper) kept() map[string]*claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.claims)
}

func (k *keeper) endExpired(ctx context.Context) {
	k.loop(ctx, k.news[0], func() time.Duration {
		earliest := never
		for _, c := range k.kept() {
			_, until := c.proof()
			if c.ValidFor() == 0 { // which ends it if a caller counts on it
				until = k.clock.now() + longestNap
			}
			if c.context.Err() == nil {
				earliest = min(earliest, until)
			}
		}
		return earliest
	})
}

func (k *keeper) askRegularly(ctx context.Context) {
	k.loop(ctx, k.news[1], func() time.Duration {
		claims := k.kept()
		due := k.nextQuestion(claims)
		if len(claims) > 0 && due <= k.clock.now() {
			k.question(ctx, claims)
			due = k.nextQuestion(k.kept())
		}
		return due
	})
}

// loop calls step whenever the time that it last returned has come, and whenever there is news.
func (k *keeper) loop(ctx context.Context, news <-chan struct{}, step func() time.Duration) {
	for ctx.Err() == nil {
		ready, stop := k.alarm(step())
		select {
		case <-ready:
		case <-news:
		case <-ctx.Done():
		}
		stop()
	}
}

func (k *keeper) alarm(at time.Duration) (<-chan time.Time, func() bool) {
	if at == never {
		return nil, func() bool { return true }
	}
	return k.clock.alarm(at)
}

// nextQuestion says when to ask.
func (k *keeper) nextQuestion(claims map[string]*claim) (due time.Duration) {
	due = never
	for _, c := range claims {
		asked, until := c.proof()
		due = min(due, asked+askInterval(until-asked))
	}
	return max(due, k.resting)
}

// shortest says how much is left of the claim that has least and is valid: a second, if none is.
func (k *keeper) shortest(claims map[string]*claim) time.Duration {
	shortest := never
	for _, c := range claims {
		if _, until := c.proof(); until > k.clock.now() {
			shortest = min(shortest, until-k.clock.now())
		}
	}
	if shortest == never {
		return time.Second
	}
	return shortest
}

// askInterval is how long to let pass between two questions: a quarter of the validity told, and a second at
// least where that leaves half of it. A lease whose validity is over is asked for all the same.
func askInterval(validity time.Duration) time.Duration {
	if validity <= 0 {
		return pauseAfterFailure
	}
	return max(validity/4, min(time.Second, validity/2), shortestPause)
}

// question asks for all claims at once. An answer is waited for while half of the shortest validity passes: then a
// new question is worth more. What is left is read after what was due: the machine may have slept in between.
func (k *keeper) question(ctx context.Context, claims map[string]*claim) {
	ctx, cancel := context.WithTimeout(ctx, max(k.shortest(claims)/2, shortestTimeout))
	defer cancel()
	sent := k.clock.now()
	answers, err := k.ask(ctx, slices.Sorted(maps.Keys(claims)))
	if err != nil { // what is not confirmed in time ends, whatever the reason
		k.log.DebugContext(ctx, "the sidecar does not say for how long something is valid", slog.Any("error", err))
		k.resting = k.clock.now() + pauseAfterFailure
		return
	}
	k.take(claims, sent, answers)
	signal(k.news[0]) // of a lease that is valid again
}

func (k *keeper) take(claims map[string]*claim, sent time.Duration, answers []answer) {
	for _, a := range answers {
		c := claims[a.id]
		switch {
		case c == nil:
		case errors.Is(a.end, ErrReleased):
			c.abandon(ErrReleased)
		case a.end != nil:
			c.lose(a.end)
		default:
			c.prove(sent, a.validFor)
		}
	}
}

func outlived() error {
	return ended(ErrLeaseLost.Error(), "the sidecar has not confirmed it in time and its validity has run out")
}

package budget

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
)

// paced are the limits of what may be done in a second, in the order of a Cost.
var paced = [...]policy.Limit{policy.SessionsPerSecond, policy.WritesPerSecond, policy.BytesPerSecond}

// A Cost is what a request takes of what is paced.
type Cost [len(paced)]int

// shortestBurst is of bytes: the largest request must be possible at any pace.
const shortestBurst = LongestMessage

// LongestMessage is how many bytes one request may have.
const LongestMessage = 1 << 20

// A spending is what one caller has done lately of what is paced: it may do the work of two seconds at once.
type spending [len(paced)]*rate.Limiter

// Spend takes the cost of a request, or nothing if it is too much for now.
func (s *Slot) Spend(of Cost) error {
	if s.account == nil || of == (Cost{}) {
		return nil
	}
	return s.account.spend(of)
}

func (a *account) spend(of Cost) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for i, limit := range paced {
		most := a.budget.Limits.Of(a.identity, limit)
		if of[i] == 0 || most == 0 {
			of[i] = 0
			continue
		}
		limiter := a.limiter(i, most)
		of[i] = min(of[i], limiter.Burst())
		lacks := float64(of[i]) - limiter.TokensAt(now)
		if wait := time.Duration(lacks / float64(most) * float64(time.Second)); wait > 0 {
			return service.QuotaExceeded(limit.String(), most, a.identity, wait)
		}
	}
	for i := range of {
		if of[i] > 0 {
			a.spent[i].AllowN(now, of[i])
		}
	}
	return nil
}

// limiter is that of one pace, which allows so much now. The account is locked.
func (a *account) limiter(pace, most int) *rate.Limiter {
	burst := 2 * most
	if paced[pace] == policy.BytesPerSecond {
		burst = max(burst, shortestBurst)
	}
	if a.spent[pace] == nil {
		a.spent[pace] = rate.NewLimiter(rate.Limit(most), burst)
	}
	limiter := a.spent[pace]
	if limiter.Burst() != burst {
		limiter.SetBurst(burst)
	}
	if limiter.Limit() != rate.Limit(most) {
		limiter.SetLimit(rate.Limit(most))
	}
	return limiter
}

// hasRested says whether the caller may do as much as if it had never been there.
func (a *account) hasRested() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	limiters := slices.Concat(a.spent[:], []*rate.Limiter{a.visits, a.turnedAway.events, a.denials.events})
	return a.calls.Load() == 0 && !slices.ContainsFunc(limiters, func(of *rate.Limiter) bool {
		return of != nil && of.Tokens() < float64(of.Burst())
	})
}

// What is slowed down: calls of one caller that are turned away, and calls of one connection that are taken back. One that is made and taken
// back at once costs the caller next to nothing and the sidecar a goroutine.
const (
	turnedAway       = 1000 // calls in a second
	turnedAwayBurst  = 4000
	withdrawals      = 200 // calls in a second
	withdrawalsBurst = 1000

	longestPause = 2 * time.Second        // before each piece that is read
	longestBreak = 100 * time.Millisecond // at a time, so that who waits still sees soon what happens
)

// A pace slows down a caller, or a connection, in whose wake too much happens.
type pace struct{ events *rate.Limiter }

func newPace(perSecond rate.Limit, burst int) *pace { return &pace{rate.NewLimiter(perSecond, burst)} }

// count notes that it has happened. A nil pace slows nothing down.
func (p *pace) count() {
	if p != nil {
		p.events.Reserve()
	}
}

// withdrawn notes the end of a call, if it was taken back or had no time.
func (p *pace) withdrawn(ctx context.Context) {
	if err := ctx.Err(); err != nil && context.Cause(ctx) == err { //nolint:errorlint // ours have a cause of their own, which may wrap it
		p.count()
	}
}

// owes says whether it has happened too often.
func (p *pace) owes() bool { return p.events.Tokens() < 0 }

// keep waits while it has happened too often, but not for long.
func (p *pace) keep() { p.keepFor(longestBreak) }

// keepFor is keep with the longest wait.
func (p *pace) keepFor(longest time.Duration) {
	if p == nil {
		return
	}
	if debt := -p.events.Tokens(); debt > 0 {
		due := time.Duration(debt / float64(p.events.Limit()) * float64(time.Second))
		<-time.After(min(longest, due))
	}
}

// How many denials of one caller are written in a second, and at once; the next one that is written counts the others.
const (
	writtenDenials      = 10
	writtenDenialsBurst = 100
)

// A denialPace keeps a caller from filling the record with what it is refused.
type denialPace struct {
	events  *rate.Limiter
	omitted atomic.Int64
}

// MayBeDenied says whether a denial is to be written, and how many were not since the last one that was.
func (s *Slot) MayBeDenied() (write bool, omitted int64) {
	switch {
	case s.account == nil:
		return true, 0
	case !s.account.denials.events.Allow():
		s.account.denials.omitted.Add(1)
		return false, 0
	}
	return true, s.account.denials.omitted.Swap(0)
}

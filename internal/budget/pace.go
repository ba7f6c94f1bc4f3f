package budget

import (
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/methods"
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
func (s *Slot) Spend(limits *caller.Limits, identity string, of Cost) error {
	return s.quota.spend(limits, identity, of)
}

// spend takes the cost of a request, or nothing if it is too much for now.
func (q *callerQuota) spend(limits *caller.Limits, identity string, of Cost) error {
	if q == nil || of == (Cost{}) {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	var taken []*rate.Reservation
	for i, limit := range paced {
		most := limits.Of(identity, limit)
		if of[i] == 0 || most == 0 {
			continue
		}
		place := q.limiter(i, most).ReserveN(now, min(of[i], q.spent[i].Burst()))
		taken = append(taken, place)
		if wait := place.DelayFrom(now); wait > 0 {
			for _, place := range taken {
				place.CancelAt(now)
			}
			return service.QuotaExceeded(limit.String(), most, identity, wait)
		}
	}
	return nil
}

// limiter is that of one pace, which allows so much now. The quota is locked.
func (q *callerQuota) limiter(pace, most int) *rate.Limiter {
	burst := 2 * most
	if paced[pace] == policy.BytesPerSecond {
		burst = max(burst, shortestBurst)
	}
	if q.spent[pace] == nil {
		q.spent[pace] = rate.NewLimiter(rate.Limit(most), burst)
	}
	limiter := q.spent[pace]
	if limiter.Burst() != burst {
		limiter.SetBurst(burst)
	}
	if limiter.Limit() != rate.Limit(most) {
		limiter.SetLimit(rate.Limit(most))
	}
	return limiter
}

// hasRested says whether the caller may do as much as if it had never been there.
func (q *callerQuota) hasRested() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls.Load() == 0 && q.arrivals.Tokens() >= arrivalsBurst && q.turnedAway.events.Tokens() >= turnedAwayBurst &&
		q.denials.limiter.Tokens() >= writtenDenialsBurst && !slices.ContainsFunc(q.spent[:], func(limiter *rate.Limiter) bool {
		return limiter != nil && limiter.Tokens() < float64(limiter.Burst())
	})
}

// intakeFor is where the requests of a method come in, of which so many are read at once.
func (q *callerQuota) intakeFor(method string, most int) *intake {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.intake == nil || cap(q.intake.reading) != most { // calls leave the one that they entered
		q.intake, q.urgent = newIntake(most), newIntake(max(1, most/urgentIn))
	}
	if methods.Of(method).IsUrgent() {
		return q.urgent
	}
	return q.intake
}

// orAny is a limit, of which 0 is none.
func orAny(most int) int {
	if most == 0 {
		return math.MaxInt
	}
	return most
}

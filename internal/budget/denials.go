package budget

import (
	"sync/atomic"

	"golang.org/x/time/rate"
)

// How many denials of one caller are written in a second, and at once; the next one that is written counts the others.
const (
	writtenDenials      = 10
	writtenDenialsBurst = 100
)

// denialPace keeps a caller from filling the record with what it is refused.
type denialPace struct {
	limiter *rate.Limiter
	omitted atomic.Int64
}

func newDenialPace() *denialPace {
	return &denialPace{limiter: rate.NewLimiter(writtenDenials, writtenDenialsBurst)}
}

// MayBeDenied says whether a denial is to be written, and how many were not since the last one that was.
func (s *Slot) MayBeDenied() (write bool, omitted int64) {
	q := s.quota
	if q == nil {
		return true, 0
	}
	if !q.denials.limiter.Allow() {
		q.denials.omitted.Add(1)
		return false, 0
	}
	return true, q.denials.omitted.Swap(0)
}

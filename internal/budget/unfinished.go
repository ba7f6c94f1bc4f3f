package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The unfinished are requests of all callers that have not come as a whole.
type unfinished struct {
	mu      sync.Mutex
	sum     int
	number  uint64 // of the newest
	callers map[*account]struct{}
	long    map[*arrival]struct{} // those whose rest was asked for
}

func newUnfinished() unfinished {
	return unfinished{callers: map[*account]struct{}{}, long: map[*arrival]struct{}{}}
}

// An arrivals is one caller's, in the order in which they have begun. It is under the lock of all.
type arrivals struct {
	number         atomic.Int64
	oldest, newest *arrival
}

// An arrival is a request, of the call that it begins or that it comes to.
type arrival struct {
	of     *account
	since  time.Time
	ctx    context.Context //nolint:containedctx // of the call
	raw    rawStream
	header [5]byte

	release func() // gives back the place of a long one, once it is decoded and nothing follows; nil without a place

	number       uint64        // under the lock of all, as are those that follow; 0 when it has left
	older, newer *arrival      // of the same caller
	asked        time.Time     // when the rest was asked for, of a long one
	ended        chan struct{} // closed when its caller has been told that it has ended; nil until it is to be told
}

var arriving = sync.Pool{New: func() any { return new(arrival) }} // there is one for each call

// enter notes a request, unless its caller has as many as it may. One that has entered leaves.
func (u *unfinished) enter(a *arrival, most int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	line := &a.of.arrivals
	if line.number.Load() >= int64(most) {
		return false
	}
	u.sum++
	u.number++
	u.callers[a.of] = struct{}{}
	line.number.Add(1)
	if a.number, a.older = u.number, line.newest; a.older == nil {
		line.oldest = a
	} else {
		a.older.newer = a
	}
	line.newest = a
	return true
}

// remove takes a request out, and says whether it was there. It is locked.
func (u *unfinished) remove(a *arrival) bool {
	if a.number == 0 {
		return false
	}
	line := &a.of.arrivals
	if a.older == nil {
		line.oldest = a.newer
	} else {
		a.older.newer = a.newer
	}
	if a.newer == nil {
		line.newest = a.older
	} else {
		a.newer.older = a.older
	}
	a.number, a.older, a.newer = 0, nil, nil
	u.sum--
	delete(u.long, a)
	if line.number.Add(-1) == 0 {
		delete(u.callers, a.of)
	}
	return true
}

// leave says whether the request was ended, when its caller has been told.
func (u *unfinished) leave(a *arrival) (ended bool) {
	u.mu.Lock()
	u.remove(a)
	told := a.ended
	u.mu.Unlock()
	if told != nil {
		<-told
	}
	return told != nil
}

// asked notes that the rest of a long request is asked for, unless it was ended.
func (u *unfinished) asked(a *arrival) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if a.number > 0 {
		u.long[a], a.asked = struct{}{}, time.Now()
	}
}

// expire takes out a request whose time is over, if it is there still.
func (u *unfinished) expire(a *arrival) (victim *arrival) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.taken(a)
}

// taken is a request that was taken out to be ended. It is locked.
func (u *unfinished) taken(a *arrival) *arrival {
	if a == nil || !u.remove(a) {
		return nil
	}
	a.ended = make(chan struct{})
	return a
}

// surplus takes out a request if there are more than most: of those that have had their time, the oldest of the caller that has the most; if
// there is none, the oldest of all.
func (u *unfinished) surplus(most int) (victim *arrival) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sum <= most {
		return nil
	}
	now := time.Now()
	for of := range u.callers {
		first, worse := of.arrivals.oldest, victim == nil
		if !worse {
			had, has := now.Sub(victim.since) >= yields, now.Sub(first.since) >= yields
			more := of.arrivals.number.Load() - victim.of.arrivals.number.Load()
			worse = has && !had || has == had && (has && more > 0 || (!has || more == 0) && first.number < victim.number)
		}
		if worse {
			victim = first
		}
	}
	return u.taken(victim)
}

// surplusLong takes out one of the long requests that have had their time: the oldest of the caller that has the most.
func (u *unfinished) surplusLong() (victim *arrival) {
	u.mu.Lock()
	defer u.mu.Unlock()
	has, now := map[*account]int{}, time.Now()
	for a := range u.long {
		has[a.of]++
	}
	for a := range u.long {
		if now.Sub(a.asked) >= yields && (victim == nil || has[a.of] > has[victim.of] || has[a.of] == has[victim.of] && a.number < victim.number) {
			victim = a
		}
	}
	return u.taken(victim)
}

// end ends the call of a request that was taken out, if one was, and with it what reads the request. No lock is held: the transport takes its
// own, and asks the budget under it.
func (a *arrival) end(why func(of *account) error) {
	if a == nil {
		return
	}
	_ = a.raw.WriteStatus(a.of.budget.Told(a.ctx, why(a.of))) // fails for a call that has ended
	close(a.ended)
}

package recipes

import (
	"errors"
	"math"
	"slices"
	"sync"
)

// errLeaderLost means that the caller who led has panicked.
var errLeaderLost = errors.New("the caller that asked for all has failed")

// An ask is one caller that wants numbers, until it is answered.
type ask struct {
	count int64
	woken chan struct{} // gets a token when the ask is answered, or is to lead

	answered bool
	numbers  Numbers
	err      error
}

// A queueOfAsks is the callers that wait, and which of them take part in the compare-and-set that is being made.
type queueOfAsks struct {
	mu      sync.Mutex
	taken   []*ask // take part; in the order of arrival
	waiting []*ask // came after them
	leader  *ask   // leads, or has been told to; nil if no caller waits
}

// enter lets own wait. It leads if no other caller does.
func (q *queueOfAsks) enter(own *ask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, own)
	if q.leader == nil {
		q.appoint()
	}
}

// appoint has the first one lead.
func (q *queueOfAsks) appoint() {
	q.leader = nil
	if len(q.taken) > 0 {
		q.waiting = append(q.taken, q.waiting...)
		q.taken = nil
	}
	if len(q.waiting) > 0 {
		q.leader = q.waiting[0]
		q.leader.woken <- struct{}{}
	}
}

// quit takes back an ask whose caller leaves; not if it is answered.
func (q *queueOfAsks) quit(own *ask) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own.answered {
		return false
	}
	q.remove(own)
	if q.leader == own {
		q.appoint()
	}
	return true
}

func (q *queueOfAsks) remove(own *ask) {
	isOwn := func(a *ask) bool { return a == own }
	q.taken = slices.DeleteFunc(q.taken, isOwn)
	q.waiting = slices.DeleteFunc(q.waiting, isOwn)
}

// handOver ends own's leading. If it was left by a panic, those that took part are told.
func (q *queueOfAsks) handOver(own *ask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !own.answered {
		q.conclude(q.taken, errLeaderLost)
		q.taken = nil
	}
	q.appoint()
}

// take has all that wait take part.
func (q *queueOfAsks) take() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.takeLocked()
}

func (q *queueOfAsks) takeLocked() {
	q.taken = append(q.taken, q.waiting...)
	q.waiting = nil
}

// fit says whether there are numbers after last for all that wait.
func (q *queueOfAsks) fit(last int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, asks := range [][]*ask{q.taken, q.waiting} {
		for _, a := range asks {
			if last > math.MaxInt64-a.count {
				return false
			}
			last += a.count
		}
	}
	return true
}

// takeFitting has all that wait take part, refuses those for whom no numbers are left after last, and returns the last
// number that the others need.
func (q *queueOfAsks) takeFitting(last int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.takeLocked()
	var refused []*ask
	q.taken = slices.DeleteFunc(q.taken, func(a *ask) bool {
		if last > math.MaxInt64-a.count {
			refused = append(refused, a)
			return true
		}
		last += a.count
		return false
	})
	q.conclude(refused, ErrExhausted)
	return last
}

// answer gives those that took part their numbers, from first on.
func (q *queueOfAsks) answer(first int64, left sequenceState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.taken {
		a.numbers = Numbers{First: first, Last: first + a.count - 1, Incarnation: left.incarnation, guard: left.guard}
		first += a.count
	}
	q.conclude(q.taken, nil)
	q.taken = nil
}

// refuse answers one.
func (q *queueOfAsks) refuse(one *ask, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(one)
	q.conclude([]*ask{one}, err)
}

// refuseTaken answers all that take part.
func (q *queueOfAsks) refuseTaken(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conclude(q.taken, err)
	q.taken = nil
}

// refuseAll answers all.
func (q *queueOfAsks) refuseAll(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.takeLocked()
	q.conclude(q.taken, err)
	q.taken = nil
}

func (q *queueOfAsks) conclude(asks []*ask, err error) {
	for _, a := range asks {
		a.answered, a.err = true, err
		if a != q.leader { // which is awake
			a.woken <- struct{}{}
		}
	}
}

package simulation

import (
	"container/heap"
	"time"
)

// An event is something that is going to happen.
type event struct {
	at     time.Duration // since the beginning
	number int           // orders the events of one instant
	happen func()
}

type eventQueue []event

func (q *eventQueue) Len() int { return len(*q) }
func (q *eventQueue) Less(i, j int) bool {
	a, b := &(*q)[i], &(*q)[j]
	return a.at < b.at || a.at == b.at && a.number < b.number
}
func (q *eventQueue) Swap(i, j int) { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }
func (q *eventQueue) Push(x any)    { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1].happen = nil
	*q = (*q)[:len(*q)-1]
	return last
}

// now is the time since the beginning.
func (e *Ensemble) now() time.Duration { return time.Since(e.began) }

// at has something happen at a time. The ensemble is locked, as it is while it happens.
func (e *Ensemble) at(t time.Duration, happen func()) {
	e.numbered++
	heap.Push(&e.events, event{at: t, number: e.numbered, happen: happen})
	if e.events[0].number == e.numbered {
		select {
		case e.sooner <- struct{}{}:
		default:
		}
	}
}

// run has events happen until the ensemble is closed.
func (e *Ensemble) run() {
	defer close(e.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-e.sooner:
		case <-e.stop:
			return
		}
		if next, more := e.happen(); more {
			timer.Reset(next)
		}
	}
}

// happen has everything happen that is due, and tells how long it is to the next event.
func (e *Ensemble) happen() (next time.Duration, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.events) > 0 {
		if wait := e.events[0].at - e.now(); wait > 0 {
			return wait, true
		}
		heap.Pop(&e.events).(event).happen()
	}
	return 0, false
}

package endtoend

import (
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A moment is when something was seen, on the clock that all processes of a machine share.
type moment time.Duration

func now() moment {
	var t unix.Timespec
	if err := unix.ClockGettime(machineClock, &t); err != nil {
		panic(err)
	}
	return moment(t.Nano())
}

func (m moment) add(d time.Duration) moment { return m + moment(d) }

// since is how long it is from other to m.
func (m moment) since(other moment) time.Duration { return time.Duration(m - other) }

// after is closed when d is over: a part of the schedule, not a wait for something.
func after(d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	time.AfterFunc(d, func() { close(over) })
	return over
}

// await waits for a channel to be closed.
func await(t *testing.T, what string, patience time.Duration, closed <-chan struct{}) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// A record is what was seen, in order, with when.
type record[T any] struct {
	mu      sync.Mutex
	seen    []sighting[T]
	ended   bool
	changed chan struct{} // closed and made anew when there is more
}

type sighting[T any] struct {
	at   moment
	what T
}

func newRecord[T any]() *record[T] { return &record[T]{changed: make(chan struct{})} }

func (r *record[T]) add(what T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, sighting[T]{now(), what})
	r.tell()
}

// end says that there will be no more.
func (r *record[T]) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.tell()
}

func (r *record[T]) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// find returns the first that matches; else whether it is worth to wait for changed.
func (r *record[T]) find(match func(T) bool) (found sighting[T], ok bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seen {
		if match(s.what) {
			return s, true, nil
		}
	}
	if r.ended {
		return found, false, nil
	}
	return found, false, r.changed
}

// await waits for the first that matches.
func (r *record[T]) await(t *testing.T, what string, patience time.Duration, match func(T) bool) sighting[T] {
	t.Helper()
	found, ok := r.wait(t, what, patience, match)
	if !ok {
		t.Fatalf("%s: it ended without", what)
	}
	return found
}

// wait waits for the first that matches, or until there will be none.
func (r *record[T]) wait(t *testing.T, what string, patience time.Duration, match func(T) bool) (found sighting[T], ok bool) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		found, ok, changed := r.find(match)
		if changed == nil {
			return found, ok
		}
		select {
		case <-changed:
		case <-timer.C:
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// all returns what was seen so far.
func (r *record[T]) all() []sighting[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[:len(r.seen):len(r.seen)]
}

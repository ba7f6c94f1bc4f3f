package service

import (
	"math"
	"time"
)

// A thing is what a lease can have: a lock, or a place in a group.
type thing struct {
	kind string
	name string
}

// The kinds of things.
const (
	kindLock   = "lock"
	kindMember = "member"
)

// A possession is what a lease has of a thing.
type possession struct {
	held    bool            // it has it; otherwise it waits for it
	since   time.Time       // when it began to wait for it, or has it
	token   int64           // of a lock it has, the fencing token; of a member, the incarnation
	left    <-chan struct{} // closed when the caller has ended the stream
	yielded bool            // the stream is over
	gone    chan struct{}   // closed when it is dropped
}

// enter has one more stream stand on the lease, for the sake of a thing that it does not have or wait for yet. left is
// closed when the caller ends the stream.
func (l *lease) enter(of thing, left <-chan struct{}) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lostLocked(); err != nil {
		return err
	}
	if l.things[of] != nil {
		return &fault{kind: errAlreadyContending, facts: map[string]string{"name": of.name}}
	}
	l.beginLocked(of, left)
	return nil
}

// begin has the one stream that a lease was made for stand on it.
func (l *lease) begin(of thing, left <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginLocked(of, left)
}

func (l *lease) beginLocked(of thing, left <-chan struct{}) {
	l.things[of] = &possession{since: time.Now(), left: left, gone: make(chan struct{})}
	l.streams.enter(math.MaxInt)
}

func (l *lease) has(of thing, token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.things[of]
	found.held, found.since, found.token = true, time.Now(), token
}

// yield says that the stream is over that had the thing, and that the lease will drop it once it is gone.
func (l *lease) yield(of thing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.things[of].yielded = true
}

// leaving is closed when a thing is dropped that the lease gives up, or has dropped already; nil if the lease has it and
// does not give it up. A caller that ends one stream and then begins another finds the first one leaving.
func (l *lease) leaving(of thing) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.things[of]
	switch {
	case found == nil:
		return after(0)
	case found.yielded, isClosed(found.left):
		return found.gone
	}
	return nil
}

// drop lets the lease have or wait for the thing again. The stream stands on the lease until streams.leave.
func (l *lease) drop(of thing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.things[of]; found != nil {
		close(found.gone)
	}
	delete(l.things, of)
}

// possessions is a copy of what the lease waits for and (true) has.
func (l *lease) possessions() map[thing]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := make(map[thing]bool, len(l.things))
	for of, possession := range l.things {
		held[of] = possession.held
	}
	return held
}

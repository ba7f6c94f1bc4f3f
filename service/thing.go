package service

import "math"

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
	held    bool          // it has it; otherwise it waits for it
	leaving chan struct{} // of what the lease gives up: closed when it is gone from the ensemble; nil before
}

// enter has one more stream stand on the lease, for the sake of a thing that it does not have or wait for yet.
func (l *lease) enter(of thing) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lostLocked(); err != nil {
		return err
	}
	if l.things[of] != nil {
		return &fault{kind: errAlreadyContending, facts: map[string]string{"name": of.name}}
	}
	l.beginLocked(of)
	return nil
}

// begin has the one stream that a lease was made for stand on it.
func (l *lease) begin(of thing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginLocked(of)
}

func (l *lease) beginLocked(of thing) {
	l.things[of] = &possession{}
	l.streams.enter(math.MaxInt)
}

func (l *lease) has(of thing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.things[of].held = true
}

// yield says that the lease gives the thing up and will drop it once it is gone.
func (l *lease) yield(of thing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.things[of].leaving = make(chan struct{})
}

// leaving is closed when a thing that the lease gives up is dropped; nil if it gives up no such thing.
func (l *lease) leaving(of thing) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.things[of]; found != nil {
		return found.leaving
	}
	return nil
}

// drop lets the lease have or wait for the thing again. The stream stands on the lease until streams.leave.
func (l *lease) drop(of thing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.things[of]; found != nil && found.leaving != nil {
		close(found.leaving)
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

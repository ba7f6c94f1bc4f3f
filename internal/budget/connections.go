package budget

import (
	"container/list"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// The connections are let in so many at a time, since each takes memory and a descriptor, of which the sidecar needs some
// for the ensemble. One caller gets three quarters of them at most, so that it cannot shut the others out, and only so many in a
// second, so that it does not keep the sidecar busy with greetings. Those that have not shown yet whose they are have places of their own, so
// that they take none from anybody, and the oldest of them makes room for the newest, since a caller shows it at once; some places are kept
// for root and the sidecar's own user.
type connections struct {
	mu       sync.Mutex
	most     int
	open     int       // whose callers are known
	silent   list.List // the others' slots, the oldest first
	accounts map[string]*account
	shut     bool // a connection was refused since one was last let in
	sum      int  // of those that were refused

	refusals  *pace
	evictions *pace
	warnings  *rate.Limiter
	starved   rate.Sometimes // of file descriptors
}

var errTooManyConnections = errors.New("too many connections")

func newConnections(most int) connections {
	return connections{
		most: most, accounts: map[string]*account{},
		refusals: newPace(refusals, refusalsBurst), evictions: newPace(evictions, evictions),
		warnings: rate.NewLimiter(warnings, warningsBurst), starved: rate.Sometimes{Interval: time.Minute},
	}
}

// Slowed keeps connections waiting in the listener's backlog while many have to be refused.
func (b *Budget) Slowed(listener net.Listener) net.Listener {
	return slowListener{listener, b}
}

type slowListener struct {
	net.Listener

	budget *Budget
}

// Accept implements net.Listener. The servers try again after an error, and say nothing.
func (s slowListener) Accept() (net.Conn, error) {
	s.budget.refusals.keep()
	s.budget.evictions.keep()
	conn, err := s.Listener.Accept()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		s.budget.starved.Do(func() {
			s.budget.Log.Error("no connection can be accepted: there is no file descriptor left; raise the limit of open files", zap.Error(err))
		})
	}
	return conn, err
}

// How many connections are refused in a second, and at once, until the others have to wait; and how many silent ones are closed for others.
const (
	refusals      = 1000
	refusalsBurst = 1000
	evictions     = 2000
)

// How many lines of it stand in the log in a second, and at once: a caller that floods is let in again and again in between.
const (
	warnings      = 0.1
	warningsBurst = 10
)

// What one caller gets, over all its connections.
const (
	arrivalsPerSecond = 200         // connections
	arrivalsBurst     = 1000        // connections at once, if there were few before
	longestQueue      = time.Second // until a connection is greeted; one that had to wait longer is refused
	keptIn            = 50          // one connection in so many is kept for root and the sidecar's own user
)

// A Slot is the place of one connection that was let in.
type Slot struct {
	budget  *Budget       // nil where any number is let in
	account *account      // under the budget's lock, as are place and over; nil until the caller is known
	silent  io.Closer     // the connection, if it has to show yet whose it is
	place   *list.Element // among the silent ones, while it is one
	over    bool
	streams count
	pace    *pace
}

// SlotOf is the place of the connection over which a call is made.
func SlotOf(from caller.Caller) *Slot {
	if slot, ok := from.Slot.(*Slot); ok {
		return slot
	}
	return &Slot{} // of a call that came over no connection
}

// Admit lets a connection in before it is known whose it is; silent is one that has to show it, else nil. The slot must be left.
func (b *Budget) Admit(silent io.Closer) (caller.Slot, error) {
	made := &Slot{budget: b, pace: newPace(withdrawals, withdrawalsBurst), silent: silent}
	if b == nil {
		return made, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= b.most {
		return nil, b.refuse("max-connections", b.most, "")
	}
	if silent != nil {
		made.place = b.silent.PushBack(made)
		if greetings := b.most - b.most/2; b.silent.Len() > greetings {
			b.evict(b.silent.Front().Value.(*Slot), greetings)
		}
	}
	return made, nil
}

// evict closes a silent connection. It is locked.
func (b *Budget) evict(s *Slot, greetings int) {
	b.evictions.count()
	b.told("half of max-connections, before it is known whose they are", greetings, "")
	s.over = true
	b.silent.Remove(s.place)
	_ = s.silent.Close() // its handshake fails
}

// Identify says whose connection it is, and returns when it may be greeted.
func (s *Slot) Identify(identity string) error {
	if s.budget == nil {
		return nil
	}
	turn, err := s.queue(identity)
	if err == nil {
		<-time.After(turn)
	}
	return err
}

// Pace returns when the connection may be read.
func (s *Slot) Pace() {
	s.pace.keep()
	if s.account != nil {
		s.account.turnedAway.keepFor(longestPause)
	}
}

// queue says how long the connection has to wait.
func (s *Slot) queue(identity string) (time.Duration, error) {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.over { // it was closed meanwhile
		return 0, errTooManyConnections
	}
	of := b.accountOf(identity)
	if kept := b.most / keptIn; b.open >= b.most || b.open >= b.most-kept && !isOwn(identity) {
		return 0, b.refuse("max-connections", b.most-kept, identity)
	}
	if share := of.most(policy.Connections); of.open >= share {
		b.Reached(policy.Connections)
		return 0, b.refuse("connections per caller", share, identity)
	}
	if share := of.lateShare(); of.open >= share {
		b.Reached(policy.Connections)
		return 0, b.refuse("an eighth of the free connections", share, identity)
	}
	place := of.visits.Reserve()
	if place.Delay() > longestQueue {
		place.Cancel()
		return 0, b.refuse("connections per caller and second", arrivalsPerSecond, identity)
	}
	b.shut = false
	b.open++
	of.open++
	s.account = of
	b.shown(s)
	return place.Delay(), nil
}

// lateShare is how many connections a caller gets when few are free, so that no few callers have all. What a policy says of it stands. It is
// locked.
func (a *account) lateShare() int {
	free, most := a.budget.most-a.budget.open, a.budget.most
	if free >= most/4 || isOwn(a.identity) || a.budget.Limits.Said(a.identity, policy.Connections) > 0 {
		return math.MaxInt
	}
	return max(1, free/8)
}

// isOwn says whether a caller is root or the sidecar's own user.
func isOwn(identity string) bool {
	return identity == policy.User+"0" || identity == policy.User+strconv.Itoa(os.Getuid())
}

// accountOf is the caller of that name. It is locked.
func (b *Budget) accountOf(identity string) *account {
	if known := b.accounts[identity]; known != nil {
		return known
	}
	for name, known := range b.accounts {
		if known.open == 0 && known.hasRested() {
			delete(b.accounts, name)
		}
	}
	fresh := b.newAccount(identity)
	b.accounts[identity] = fresh
	return fresh
}

// refuse tells the log once if many are refused one after the other. It is locked.
func (b *Budget) refuse(limit string, most int, identity string) error {
	b.told(limit, most, identity)
	b.refusals.count()
	return errTooManyConnections
}

// told counts a connection that is refused or closed, and warns. It is locked.
func (b *Budget) told(limit string, most int, identity string) {
	if !b.shut && b.warnings.Allow() {
		b.Log.Warn("connections are refused", zap.String("limit", limit), zap.Int("max", most), zap.String("caller", identity))
	}
	b.shut = true
	b.sum++
}

// Count says how many connections are open, and how many were refused so far.
func (b *Budget) Count() (open, refused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open, b.sum
}

// Leave frees the slot, once.
func (s *Slot) Leave() {
	b := s.budget
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	if s.account != nil {
		b.open--
		s.account.open--
	}
	b.shown(s)
}

// shown is of a connection that is silent no longer. It is locked.
func (b *Budget) shown(s *Slot) {
	if s.place != nil {
		b.silent.Remove(s.place)
		s.place = nil
	}
}

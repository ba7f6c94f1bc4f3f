// Package budget bounds what one caller may take of a sidecar: connections, calls, streams, requests that have not come, bytes, and what it
// does in a second.
package budget

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// Connections lets in so many connections at a time, since each takes memory and a descriptor, of which the sidecar needs some
// for the ensemble. One caller gets three quarters of them at most, so that it cannot shut the others out, and only so many in a
// second, so that it does not keep the sidecar busy with greetings. Those that have not shown yet whose they are have places of their own, so
// that they take none from anybody, and the oldest of them makes room for the newest, since a caller shows it at once; some places are kept
// for root and the sidecar's own user.
type Connections struct {
	most, greetings, kept int
	limits                *caller.Limits // of one caller
	refused               func(limit policy.Limit)
	log                   *zap.Logger

	mu     sync.Mutex
	open   int                     // whose callers are known
	silent list.List               // the others' slots, the oldest first
	quotas map[string]*callerQuota // by who called
	shut   bool                    // somebody was refused since somebody was last let in
	sum    int                     // of those that were refused

	refusals  *pace
	evictions *pace
	warnings  *rate.Limiter
	starved   rate.Sometimes // of file descriptors
}

var errTooManyConnections = errors.New("too many connections")

// NewConnections makes one, which lets any number in if most is 0, and tells of limits of callers that were reached.
func NewConnections(most int, limits *caller.Limits, refused func(policy.Limit), log *zap.Logger) *Connections {
	most = orAny(most)
	return &Connections{
		most: most, greetings: most - most/2, kept: most / keptIn, limits: limits, refused: refused, log: log,
		quotas:   map[string]*callerQuota{},
		refusals: newPace(refusals, refusalsBurst), evictions: newPace(evictions, evictions), warnings: rate.NewLimiter(warnings, warningsBurst),
		starved: rate.Sometimes{Interval: time.Minute},
	}
}

// keptIn so many connections one is kept for root and the sidecar's own user.
const keptIn = 50

// Slowed keeps connections waiting in the listener's backlog while many have to be refused.
func (l *Connections) Slowed(listener net.Listener) net.Listener {
	return slowListener{listener, l}
}

type slowListener struct {
	net.Listener

	limiter *Connections
}

// Accept implements net.Listener. The servers try again after an error, and say nothing.
func (s slowListener) Accept() (net.Conn, error) {
	s.limiter.refusals.keep()
	s.limiter.evictions.keep()
	conn, err := s.Listener.Accept()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		s.limiter.starved.Do(func() {
			s.limiter.log.Error("no connection can be accepted: there is no file descriptor left; raise the limit of open files", zap.Error(err))
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
	arrivals      = 200         // connections in a second
	arrivalsBurst = 1000        // connections at once, if there were few before
	longestQueue  = time.Second // until a connection is greeted; one that had to wait longer is refused
)

// A callerQuota is what one caller takes of the connections.
type callerQuota struct {
	open     int // connections; the limiter's
	arrivals *rate.Limiter
	talks    atomic.Int64 // streams in both directions that are open for a further request
	streams  streamCount
	large    *semaphore.Weighted // requests with many fields, one of which is decoded at a time
	reads    map[string]*reads   // by the method that reads
	denials  *denialPace

	calls      atomic.Int64 // under way
	turnedAway *pace

	mu     sync.Mutex
	intake *intake
	urgent *intake // of the requests that wait for no others
	spent  spending
}

func newCallerQuota() *callerQuota {
	return &callerQuota{
		arrivals: rate.NewLimiter(arrivals, arrivalsBurst), denials: newDenialPace(),
		turnedAway: newTurnedAway(), large: semaphore.NewWeighted(1),
		reads: newLines(),
	}
}

// A Slot is the place of one connection that was let in.
type Slot struct {
	limiter *Connections  // nil where any number is let in
	quota   *callerQuota  // under its lock, as are place and over; nil until the caller is known
	silent  io.Closer     // the connection, if it has to show yet whose it is
	place   *list.Element // among the silent ones, while it is one
	over    bool

	streams streamCount
	pace    *pace
}

// SlotOf is the place of the connection over which a call is made.
func SlotOf(from caller.Caller) *Slot {
	if slot, ok := from.Slot.(*Slot); ok {
		return slot
	}
	return &Slot{} // of a call that came over no connection
}

// TurnedAway notes that a call of the caller was refused for what it takes.
func (s *Slot) TurnedAway() {
	if s.quota != nil {
		s.quota.turnedAway.count()
	}
}

// Withdrawn notes the end of a call, if it was taken back or had no time.
func (s *Slot) Withdrawn(ctx context.Context) { s.pace.withdrawn(ctx) }

// enter lets a connection in before it is known whose it is; silent is one that has to show it, else nil. The slot must be left.
func (l *Connections) enter(silent io.Closer) (*Slot, error) {
	made := &Slot{limiter: l, pace: newPace(withdrawals, withdrawalsBurst), silent: silent}
	if l == nil {
		return made, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		return nil, l.refuse("max-connections", l.most, "")
	}
	if silent != nil {
		made.place = l.silent.PushBack(made)
		if l.silent.Len() > l.greetings {
			l.evict(l.silent.Front().Value.(*Slot))
		}
	}
	return made, nil
}

// evict closes a silent connection. It is locked.
func (l *Connections) evict(s *Slot) {
	l.evictions.count()
	l.told("half of max-connections, before it is known whose they are", l.greetings, "")
	s.over = true
	l.silent.Remove(s.place)
	_ = s.silent.Close() // its handshake fails
}

// Admit is enter for a handshake.
func (l *Connections) Admit(silent io.Closer) (caller.Slot, error) { return l.enter(silent) }

// Identify says whose connection it is, and returns when it may be greeted.
func (s *Slot) Identify(identity string) error {
	if s.limiter == nil {
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
	if s.quota != nil {
		s.quota.turnedAway.keepFor(longestPause)
	}
}

// queue says how long the connection has to wait.
func (s *Slot) queue(identity string) (time.Duration, error) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.over { // it was closed meanwhile
		return 0, errTooManyConnections
	}
	quota := l.quota(identity)
	if l.open >= l.most || l.open >= l.most-l.kept && !isOwn(identity) {
		return 0, l.refuse("max-connections", l.most-l.kept, identity)
	}
	if share := l.limits.Of(identity, policy.Connections); quota.open >= orAny(share) {
		l.refused(policy.Connections)
		return 0, l.refuse("connections per caller", share, identity)
	}
	place := quota.arrivals.Reserve()
	if place.Delay() > longestQueue {
		place.Cancel()
		return 0, l.refuse("connections per caller and second", arrivals, identity)
	}
	l.shut = false
	l.open++
	quota.open++
	s.quota = quota
	l.shown(s)
	return place.Delay(), nil
}

// isOwn says whether a caller is root or the sidecar's own user.
func isOwn(identity string) bool {
	return identity == policy.User+"0" || identity == policy.User+strconv.Itoa(os.Getuid())
}

// quota is the caller of that name. It is locked.
func (l *Connections) quota(identity string) *callerQuota {
	if known := l.quotas[identity]; known != nil {
		return known
	}
	for name, known := range l.quotas {
		if known.open == 0 && known.hasRested() {
			delete(l.quotas, name)
		}
	}
	fresh := newCallerQuota()
	l.quotas[identity] = fresh
	return fresh
}

// refuse tells the log once if many are refused one after the other. It is locked.
func (l *Connections) refuse(limit string, most int, identity string) error {
	l.told(limit, most, identity)
	l.refusals.count()
	return errTooManyConnections
}

// told counts a connection that is refused or closed, and warns. It is locked.
func (l *Connections) told(limit string, most int, identity string) {
	if !l.shut && l.warnings.Allow() {
		l.log.Warn("connections are refused", zap.String("limit", limit), zap.Int("max", most), zap.String("caller", identity))
	}
	l.shut = true
	l.sum++
}

// Count says how many connections are open, and how many were refused so far.
func (l *Connections) Count() (open, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.sum
}

// Leave frees the slot, once.
func (s *Slot) Leave() {
	l := s.limiter
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	if s.quota != nil {
		l.open--
		s.quota.open--
	}
	l.shown(s)
}

// shown is of a connection that is silent no longer. It is locked.
func (l *Connections) shown(s *Slot) {
	if s.place != nil {
		l.silent.Remove(s.place)
		s.place = nil
	}
}

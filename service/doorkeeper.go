package service

import (
	"errors"
	"math"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// A doorkeeper lets in so many connections at a time, since each takes memory and a descriptor, of which the sidecar needs some
// for the ensemble. One caller gets three quarters of them at most, so that it cannot shut the others out, and only so many in a
// second, so that it does not keep the sidecar busy with greetings.
type doorkeeper struct {
	most, share int
	log         *zap.Logger

	mu     sync.Mutex
	open   int
	guests map[string]*guest // by who called
	shut   bool              // somebody was refused since somebody was last let in
	sum    int               // of those that were refused

	refusals *pace
	warnings *rate.Limiter
}

var errTooManyConnections = errors.New("too many connections")

// newDoorkeeper makes one, which lets any number in if most is 0.
func newDoorkeeper(most int, log *zap.Logger) *doorkeeper {
	if most == 0 {
		most = math.MaxInt
	}
	return &doorkeeper{
		most: most, share: most - most/4, log: log, guests: map[string]*guest{}, refusals: newPace(refusals, refusalsBurst),
		warnings: rate.NewLimiter(warnings, warningsBurst),
	}
}

// at keeps connections waiting in the listener's backlog while many have to be refused.
func (d *doorkeeper) at(listener net.Listener) net.Listener { return slowed{listener, d.refusals} }

type slowed struct {
	net.Listener

	pace *pace
}

// Accept implements net.Listener.
func (s slowed) Accept() (net.Conn, error) {
	s.pace.keep()
	return s.Listener.Accept()
}

// How many connections are refused in a second, and at once, until the others have to wait.
const (
	refusals      = 1000
	refusalsBurst = 1000
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

// A guest is one caller.
type guest struct {
	open     int // connections; the doorkeeper's
	arrivals *rate.Limiter
	reads    *reads
	denials  *denialPace
}

func newGuest() *guest {
	return &guest{arrivals: rate.NewLimiter(arrivals, arrivalsBurst), reads: newReads(), denials: newDenialPace()}
}

// A visit is one connection that was let in.
type visit struct {
	door  *doorkeeper // nil where any number is let in
	guest *guest      // under its lock, as is over; nil until the caller is known
	over  bool

	streams streamCount
	pace    *pace
}

// visitOf is the visit in the course of which a call is made.
func visitOf(from caller) *visit {
	if visit, ok := from.slot.(*visit); ok {
		return visit
	}
	return &visit{} // of a call that came over no connection
}

// enter lets a connection in before it is known whose it is. The visit must be left.
func (d *doorkeeper) enter() (*visit, error) {
	made := &visit{door: d, pace: newPace(withdrawals, withdrawalsBurst)}
	if d == nil {
		return made, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open >= d.most {
		return nil, d.refuse("max-connections", d.most, "")
	}
	d.open++
	return made, nil
}

// admit is enter for a handshake.
func (d *doorkeeper) admit() (slot, error) { return d.enter() }

// Identify says whose connection it is, and returns when it may be greeted.
func (v *visit) Identify(identity string) error {
	if v.door == nil {
		return nil
	}
	turn, err := v.queue(identity)
	if err == nil {
		<-time.After(turn)
	}
	return err
}

// Pace returns when the connection may be read.
func (v *visit) Pace() { v.pace.keep() }

// queue says how long the connection has to wait.
func (v *visit) queue(identity string) (time.Duration, error) {
	d := v.door
	d.mu.Lock()
	defer d.mu.Unlock()
	guest := d.guest(identity)
	if guest.open >= d.share {
		return 0, d.refuse("three quarters of max-connections", d.share, identity)
	}
	place := guest.arrivals.Reserve()
	if place.Delay() > longestQueue {
		place.Cancel()
		return 0, d.refuse("connections of one caller in a second", arrivals, identity)
	}
	d.shut = false
	guest.open++
	v.guest = guest
	return place.Delay(), nil
}

// guest is the caller of that name. It is locked.
func (d *doorkeeper) guest(identity string) *guest {
	if known := d.guests[identity]; known != nil {
		return known
	}
	for name, known := range d.guests {
		if known.open == 0 && known.arrivals.Tokens() >= arrivalsBurst {
			delete(d.guests, name)
		}
	}
	fresh := newGuest()
	d.guests[identity] = fresh
	return fresh
}

// refuse tells the log once if many are refused one after the other. It is locked.
func (d *doorkeeper) refuse(limit string, most int, identity string) error {
	if !d.shut && d.warnings.Allow() {
		d.log.Warn("connections are refused", zap.String("limit", limit), zap.Int("most", most), zap.String("caller", identity))
	}
	d.shut = true
	d.sum++
	d.refusals.count()
	return errTooManyConnections
}

// count says how many connections are open, and how many were refused so far.
func (d *doorkeeper) count() (open, refused int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open, d.sum
}

// Leave ends the visit, once.
func (v *visit) Leave() {
	d := v.door
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.over {
		return
	}
	v.over = true
	d.open--
	if v.guest != nil {
		v.guest.open--
	}
}

package service

import (
	"errors"
	"sync"

	"go.uber.org/zap"
)

// A doorkeeper lets in so many connections at a time, since each takes memory and a descriptor, of which the sidecar needs some
// for the ensemble. One caller gets three quarters of them at most, so that it cannot shut the others out.
type doorkeeper struct {
	most, share int
	log         *zap.Logger

	mu   sync.Mutex
	open int
	each map[string]int // by who called
	shut bool           // somebody was refused since somebody was last let in
}

var errTooManyConnections = errors.New("too many connections")

// newDoorkeeper makes one; nil, which lets everybody in, if most is 0.
func newDoorkeeper(most int, log *zap.Logger) *doorkeeper {
	if most == 0 {
		return nil
	}
	return &doorkeeper{most: most, share: most - most/4, log: log, each: map[string]int{}}
}

// A visit is one connection that was let in.
type visit struct {
	door     *doorkeeper
	identity string // under its lock, as is over; empty until the caller is known
	over     bool
}

// enter lets a connection in before it is known whose it is. The visit must be left.
func (d *doorkeeper) enter() (*visit, error) {
	if d == nil {
		return &visit{}, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open >= d.most {
		return nil, d.refuse("max-connections", d.most, "")
	}
	d.open++
	return &visit{door: d}, nil
}

// introduce says whose connection it is.
func (v *visit) introduce(identity string) error {
	d := v.door
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.each[identity] >= d.share {
		return d.refuse("three quarters of max-connections", d.share, identity)
	}
	d.shut = false
	d.each[identity]++
	v.identity = identity
	return nil
}

// refuse tells the log once, however many are refused one after the other. It is locked.
func (d *doorkeeper) refuse(limit string, most int, identity string) error {
	if !d.shut {
		d.log.Warn("connections are refused", zap.String("limit", limit), zap.Int("most", most), zap.String("caller", identity))
	}
	d.shut = true
	return errTooManyConnections
}

// leave ends the visit, once.
func (v *visit) leave() {
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
	if v.identity == "" {
		return
	}
	d.each[v.identity]--
	if d.each[v.identity] == 0 {
		delete(d.each, v.identity)
	}
}

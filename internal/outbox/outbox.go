// Package outbox sends a stream's messages without ever keeping its handler waiting.
package outbox

import (
	"sync"
	"time"
)

// unsentTooLong is how long a message may wait for a caller that does not read.
const unsentTooLong = 10 * time.Second

// A Topic is what a message is about: a positive number. Of two unsent messages of one topic only the newer one is sent.
type Topic int

const (
	none      Topic = -iota // of what Add or Tell has sent: no other message takes its place
	keptAlive               // the stream is still served
)

// An Outbox holds at most one unsent message of each topic, and composes what it is Put when its turn has come, so that a duration in it counts
// from then. Its goroutine exists only while there is something to send, or was lately where it Lingers; the stream's end frees it, and Wait
// waits for it.
type Outbox[M any] struct {
	send func(M) error
	slow func() // ends the stream, of which a message could not be sent for too long

	mu      sync.Mutex
	entries []entry[M]
	sending bool
	ended   bool          // nothing is put any more
	idle    chan struct{} // closed when what sends has sent all there was; nil before it sends for the first time

	pause   time.Duration // for which what sends rests until there is more; 0 if it does not
	resting bool
	more    chan struct{} // wakes it
	rest    *time.Timer   // looks whether it has rested for so long. It is not moved with each message

	since    time.Time   // when it began to send a message; zero while it sends none
	watch    *time.Timer // looks whether that takes too long. It is not moved with each message either: see look
	watching bool

	keepalive time.Duration // after which silence fires; 0 if no reader waits for that
	silence   *time.Timer
}

// An entry is an unsent message. compose returns false if there is nothing to say any more. Neither waits for anything: that would look as
// if the reader did not read.
type entry[M any] struct {
	topic   Topic
	compose func() (M, bool) // nil of one that is composed
	message M                // then
	sent    func()           // called when it has been handed to the transport; may be nil
}

// New makes an outbox. It calls slow when a caller has kept a message waiting for ten seconds: slow must end the stream.
func New[M any](send func(M) error, slow func()) *Outbox[M] {
	return &Outbox[M]{send: send, slow: slow}
}

// Linger has what sends wait for so long for more to send before it ends, for streams that many messages come over, one after the other: a fresh
// goroutine would have to grow its stack for each. Call it before anything is put.
func (o *Outbox[M]) Linger(pause time.Duration) {
	o.pause, o.more = pause, make(chan struct{}, 1)
}

// KeepAlive has a message sent at once, and again whenever none was sent for so long. Call it before anything is put.
func (o *Outbox[M]) KeepAlive(every time.Duration, message M) {
	say := func() { o.Put(keptAlive, func() (M, bool) { return message, true }) }
	o.keepalive, o.silence = every, time.AfterFunc(every, say)
	say()
}

// Put has a message sent soon, instead of an unsent one of the same topic.
func (o *Outbox[M]) Put(about Topic, compose func() (M, bool)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.entries {
		if o.entries[i].topic == about {
			o.entries[i].compose = compose
			return
		}
	}
	o.addLocked(entry[M]{topic: about, compose: compose})
}

// Add has a message sent after all that are unsent.
func (o *Outbox[M]) Add(compose func() (M, bool)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addLocked(entry[M]{topic: none, compose: compose})
}

// Tell has a message sent after all that are unsent, and says when it has been.
func (o *Outbox[M]) Tell(message M, sent func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addLocked(entry[M]{topic: none, message: message, sent: sent})
}

func (o *Outbox[M]) addLocked(added entry[M]) {
	if o.ended {
		return
	}
	o.entries = append(o.entries, added)
	if !o.sending {
		o.sending, o.idle = true, make(chan struct{})
		go o.deliver(o.idle)
	}
	o.wakeLocked()
}

// wakeLocked wakes what sends, if it rests.
func (o *Outbox[M]) wakeLocked() {
	if o.resting {
		o.resting = false
		o.more <- struct{}{}
	}
}

// Unsent is how many messages wait.
func (o *Outbox[M]) Unsent() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.entries)
}

// deliver sends until nothing is left or the stream has ended.
func (o *Outbox[M]) deliver(idle chan<- struct{}) {
	defer close(idle)
	for {
		entry, ok := o.next()
		if !ok {
			return
		}
		message := entry.message
		if entry.compose != nil {
			message, ok = entry.compose()
		}
		if ok && o.post(message) != nil {
			o.fail()
			return
		}
		if entry.sent != nil {
			entry.sent()
		}
	}
}

// fail is when nothing can be sent any more: sending stays set.
func (o *Outbox[M]) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Time{}
}

func (o *Outbox[M]) next() (first entry[M], ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Time{}
	if len(o.entries) == 0 && o.pause > 0 && !o.ended {
		o.restLocked()
	}
	if len(o.entries) == 0 {
		o.sending = false
		return first, false
	}
	first = o.entries[0]
	o.entries = append(o.entries[:0], o.entries[1:]...)
	o.beginLocked()
	return first, true
}

// restLocked waits for more to send, but not for longer than the pause.
func (o *Outbox[M]) restLocked() {
	began := time.Now()
	if o.resting = true; o.rest == nil {
		o.rest = time.NewTimer(o.pause)
	}
	for o.resting {
		woken := o.awaitMore()
		left := o.pause - time.Since(began)
		switch {
		case woken:
			return
		case !o.resting: // woken as the timer fired
			<-o.more
			left = o.pause
		case left <= 0:
			o.resting, left = false, o.pause
		}
		o.rest.Reset(left)
	}
}

// awaitMore waits until what rests is woken, or its timer fires. The lock is held but meanwhile.
func (o *Outbox[M]) awaitMore() (woken bool) {
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-o.more:
		return true
	case <-o.rest.C:
		return false
	}
}

// beginLocked begins to send a message.
func (o *Outbox[M]) beginLocked() {
	o.since = time.Now()
	if !o.watching {
		o.watchLocked(unsentTooLong)
	}
}

// watchLocked has the outbox looked at in so long.
func (o *Outbox[M]) watchLocked(in time.Duration) {
	o.watching = true
	if o.watch == nil {
		o.watch = time.AfterFunc(in, o.look)
	} else {
		o.watch.Reset(in)
	}
}

// look ends the stream if a message has taken its time. At one that has begun since, it looks again later.
func (o *Outbox[M]) look() {
	o.mu.Lock()
	o.watching = false
	left := unsentTooLong - time.Since(o.since)
	slow := !o.since.IsZero() && left <= 0
	if !o.since.IsZero() && left > 0 {
		o.watchLocked(left)
	}
	o.mu.Unlock()
	if slow {
		o.slow()
	}
}

func (o *Outbox[M]) post(message M) error {
	err := o.send(message)
	if o.silence != nil {
		o.silence.Reset(o.keepalive)
	}
	return err
}

// Wait returns when nothing is being sent any more. The stream must have ended.
func (o *Outbox[M]) Wait() {
	o.mu.Lock()
	idle := o.idle
	o.ended = true
	o.wakeLocked()
	o.mu.Unlock()
	if idle != nil {
		<-idle
	}
	if o.watch != nil { // which nothing makes or moves any more but itself, for nothing
		o.watch.Stop()
	}
	if o.silence != nil {
		o.silence.Stop()
	}
}

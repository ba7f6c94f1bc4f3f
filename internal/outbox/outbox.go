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
	since   time.Time     // when it began to rest, or to send a message; zero while it does neither

	watch *time.Timer // looks whether that takes too long. It is not moved with each message: see look
	due   time.Time   // when it does; zero if it does not

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
		o.resting, o.since = false, time.Time{}
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
	o.beginLocked(unsentTooLong)
	return first, true
}

// restLocked waits for more to send, but not for longer than the pause.
func (o *Outbox[M]) restLocked() {
	o.resting = true
	o.beginLocked(o.pause)
	o.mu.Unlock()
	<-o.more
	o.mu.Lock()
}

// beginLocked begins something that may take so long.
func (o *Outbox[M]) beginLocked(most time.Duration) {
	o.since = time.Now()
	o.watchLocked(o.since.Add(most))
}

// watchLocked has the outbox looked at then, or sooner if that was said before.
func (o *Outbox[M]) watchLocked(due time.Time) {
	switch {
	case !o.due.IsZero() && !due.Before(o.due):
		return
	case o.watch == nil:
		o.watch = time.AfterFunc(time.Until(due), o.look)
	default:
		o.watch.Reset(time.Until(due))
	}
	o.due = due
}

// look ends a rest that has taken its time, and the stream if a message has. At what has begun since, it looks again later.
func (o *Outbox[M]) look() {
	o.mu.Lock()
	most := unsentTooLong
	if o.resting {
		most = o.pause
	}
	o.due = time.Time{}
	over := !o.since.IsZero() && time.Since(o.since) >= most
	slow := over && !o.resting
	switch {
	case over:
		o.wakeLocked()
	case !o.since.IsZero():
		o.watchLocked(o.since.Add(most))
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

package service

import (
	"sync"
	"time"
)

// unsentTooLong is how long a message may wait for a caller that does not read.
const unsentTooLong = 10 * time.Second

// A topic is what a message is about. Of two unsent messages of one topic only the newer one is sent.
type topic int

const (
	topicNone         topic = iota // what no other message takes the place of
	topicPlace                     // opened; queued, granted; joined; a view
	topicConnectivity              // suspended, resumed
	topicRevocation                // revocation requested
	topicMetadata                  // updated; decided
	topicKeepalive                 // the stream is still served

	topics // how many there are
)

// An outbox sends a stream's messages without ever keeping its handler waiting. It holds at most one unsent message of
// each topic, and composes it when its turn has come, so that a duration in it counts from then. Its goroutine exists
// only while there is something to send; the stream's end frees it, and wait waits for it.
type outbox[M any] struct {
	over over // of the stream, which a message ends that cannot be sent for too long
	send func(M) error
	slow func() // does so

	mu      sync.Mutex
	letters []letter[M]
	sending bool
	ended   bool          // nothing is put any more
	idle    chan struct{} // closed when what sends has sent all there was; nil before it sends for the first time

	keepalive time.Duration // after which silence fires; 0 if no reader waits for that
	silence   *time.Timer
}

// A letter is an unsent message. compose returns false if there is nothing to say any more.
type letter[M any] struct {
	topic   topic
	compose func() (M, bool)
	sent    func() // called when it has been handed to the transport; may be nil
}

// A mailbox is where a handler puts what its caller shall be sent.
type mailbox[M any] interface {
	put(about topic, compose func() (M, bool)) // has a message sent soon, instead of an unsent one of the same topic
	wait()                                     // returns when nothing is being sent any more; the stream must have ended
}

func newOutbox[M any](of over, send func(M) error) *outbox[M] {
	return &outbox[M]{over: of, send: send, slow: func() { of.end(errSlowReader) }}
}

// keepAlive has a message sent at once, and again whenever none was sent for so long. It is called before anything is put.
func (o *outbox[M]) keepAlive(every time.Duration, message M) {
	say := func() { o.put(topicKeepalive, func() (M, bool) { return message, true }) }
	o.keepalive, o.silence = every, time.AfterFunc(every, say)
	say()
}

// put has a message sent soon, instead of an unsent one of the same topic.
func (o *outbox[M]) put(about topic, compose func() (M, bool)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.letters {
		if o.letters[i].topic == about {
			o.letters[i].compose = compose
			return
		}
	}
	o.addLocked(letter[M]{topic: about, compose: compose})
}

// add has a message sent after all that are unsent, and says when it has been.
func (o *outbox[M]) add(compose func() (M, bool), sent func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addLocked(letter[M]{topic: topicNone, compose: compose, sent: sent})
}

func (o *outbox[M]) addLocked(added letter[M]) {
	if o.ended {
		return
	}
	o.letters = append(o.letters, added)
	if !o.sending {
		o.sending, o.idle = true, make(chan struct{})
		go o.deliver(o.idle)
	}
}

// unsent is how many messages wait.
func (o *outbox[M]) unsent() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.letters)
}

// deliver sends until nothing is left or the stream has ended.
func (o *outbox[M]) deliver(idle chan<- struct{}) {
	defer close(idle)
	for {
		letter, ok := o.next()
		if !ok {
			return
		}
		if message, ok := letter.compose(); ok && o.post(message) != nil {
			return // sending stays set: nothing can be sent any more
		}
		if letter.sent != nil {
			letter.sent()
		}
	}
}

func (o *outbox[M]) next() (first letter[M], ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.letters) == 0 {
		o.sending = false
		return first, false
	}
	first = o.letters[0]
	o.letters = append(o.letters[:0], o.letters[1:]...)
	return first, true
}

func (o *outbox[M]) post(message M) error {
	late := time.AfterFunc(unsentTooLong, o.slow)
	defer late.Stop()
	err := o.send(message)
	if o.silence != nil {
		o.silence.Reset(o.keepalive)
	}
	return err
}

// wait returns when nothing is being sent any more. The stream must have ended.
func (o *outbox[M]) wait() {
	o.mu.Lock()
	idle := o.idle
	o.ended = true
	o.mu.Unlock()
	if idle != nil {
		<-idle
	}
	if o.silence != nil {
		o.silence.Stop()
	}
}

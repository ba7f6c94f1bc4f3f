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
	topicPlace        topic = iota // opened; queued, granted; joined; a view
	topicConnectivity              // suspended, resumed
	topicRevocation                // revocation requested
	topicMetadata                  // updated
)

// An outbox sends a stream's messages without ever keeping its handler waiting. It holds at most one unsent message of
// each topic, and composes it when its turn has come, so that a duration in it counts from then. Its goroutine exists
// only while there is something to send; the stream's end frees it, and wait waits for it.
type outbox[M any] struct {
	send func(M) error
	slow chan struct{} // closed when a message could not be sent for too long

	mu      sync.Mutex
	letters []letter[M]
	sending bool
	running sync.WaitGroup
	tooSlow sync.Once
}

// A letter is an unsent message. compose returns false if there is nothing to say any more.
type letter[M any] struct {
	topic   topic
	compose func() (M, bool)
}

func newOutbox[M any](send func(M) error) *outbox[M] {
	return &outbox[M]{send: send, slow: make(chan struct{})}
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
	o.letters = append(o.letters, letter[M]{about, compose})
	if !o.sending {
		o.sending = true
		o.running.Go(o.deliver)
	}
}

// deliver sends until nothing is left or the stream has ended.
func (o *outbox[M]) deliver() {
	for {
		compose, ok := o.next()
		if !ok {
			return
		}
		if message, ok := compose(); ok && o.post(message) != nil {
			return // sending stays set: nothing can be sent any more
		}
	}
}

func (o *outbox[M]) next() (compose func() (M, bool), ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.letters) == 0 {
		o.sending = false
		return nil, false
	}
	first := o.letters[0]
	o.letters = append(o.letters[:0], o.letters[1:]...)
	return first.compose, true
}

func (o *outbox[M]) post(message M) error {
	late := time.AfterFunc(unsentTooLong, func() { o.tooSlow.Do(func() { close(o.slow) }) })
	defer late.Stop()
	return o.send(message)
}

// wait returns when nothing is being sent any more. The stream must have ended.
func (o *outbox[M]) wait() { o.running.Wait() }

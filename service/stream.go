package service

import "github.com/sidekeeper/sidekeeper/internal/outbox"

// What the messages of a stream are about.
const (
	topicPlace        = 1 + outbox.Topic(iota) // opened; queued, granted; joined; a view
	topicConnectivity                          // suspended, resumed
	topicRevocation                            // revocation requested
	topicMetadata                              // updated; decided
	topicSent                                  // nothing: the decision has been sent

	topics // one more than there are
)

// A mailbox is where a handler puts what its caller shall be sent.
type mailbox[M any] interface {
	Put(about outbox.Topic, compose func() (M, bool)) // has a message sent soon, instead of an unsent one of the same topic
	Wait()                                            // returns when nothing is being sent any more; the stream must have ended
}

// newOutbox is for the messages of a stream, whose end comes when one cannot be sent for too long.
func newOutbox[M any](of over, send func(M) error) *outbox.Outbox[M] {
	return outbox.New(send, func() { of.end(errSlowReader) })
}

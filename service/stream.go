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

// A postedStream is a stream's outbox and the stream's end, which comes when a message cannot be sent for too long.
type postedStream[M any] struct {
	*outbox.Outbox[M]

	over over
}

func newOutbox[M any](of over, send func(M) error) postedStream[M] {
	return postedStream[M]{outbox.New(send, func() { of.end(errSlowReader) }), of}
}

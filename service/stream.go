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

// newOutbox is for the messages of a stream, whose end comes when one cannot be sent for too long.
func newOutbox[M any](of over, send func(M) error) *outbox.Outbox[M] {
	return outbox.New(send, func() { of.end(errSlowReader) })
}

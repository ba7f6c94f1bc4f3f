package service

import (
	"time"

	"google.golang.org/protobuf/proto"
)

// queueNews is what a waiting caller was told of how it stands: at once, and again when that has changed. How often it is worth to look
// grows with the distance, up front once a second, so that a long queue does not keep reading itself.
type queueNews[M any] struct {
	told     proto.Message // last, without ages
	position int           // in it
	next     time.Time     // when it is worth to look
}

const (
	glanceLeast   = time.Second
	glancePerRank = 250 * time.Millisecond
)

// isSettled says whether only the predecessor can change what was told.
func (q *queueNews[M]) isSettled(position int) bool {
	return q.told != nil && position == 1 && q.position == 1
}

// isDue says whether it is time to tell again.
func (q *queueNews[M]) isDue(position int) bool {
	return !q.isSettled(position) && !time.Now().Before(q.next)
}

// left is how long it is until then; 0 for ever.
func (q *queueNews[M]) left(position int) time.Duration {
	if q.isSettled(position) {
		return 0
	}
	return max(time.Millisecond, time.Until(q.next))
}

// tell returns what puts the event into the box, if the state that it tells of, without ages, is not the one that was told last; else nil.
func (q *queueNews[M]) tell(put put[M], position int, ageless proto.Message, event func() M) func() {
	q.next = time.Now().Add(max(glanceLeast, time.Duration(position)*glancePerRank))
	if proto.Equal(ageless, q.told) {
		return nil
	}
	q.told, q.position = ageless, position
	return func() { put(topicPlace, func() (M, bool) { return event(), true }) }
}

// sooner is the shorter of two times to wait, of which 0 is for ever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

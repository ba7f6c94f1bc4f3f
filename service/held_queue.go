package service

import (
	"time"

	"google.golang.org/protobuf/proto"
)

// queueNews tells a waiting caller how it stands: at once, and again when that has changed. How often it is worth to look
// grows with the distance, up front once a second, so that a long queue does not keep reading itself.
type queueNews[M any] struct {
	box      mailbox[M]
	told     proto.Message // what was told last, without ages
	position int           // in it
	next     time.Time
}

const (
	glanceLeast   = time.Second
	glancePerRank = 250 * time.Millisecond
)

// due is closed when it is time to tell again; nil if only the predecessor can change anything.
func (q *queueNews[M]) due(position int) <-chan struct{} {
	if q.told != nil && position == 1 && q.position == 1 {
		return nil
	}
	return after(time.Until(q.next))
}

// tell puts the event into the box, if the state that it tells of, without ages, is not the one that was told last.
func (q *queueNews[M]) tell(position int, ageless proto.Message, event func() M) {
	q.next = time.Now().Add(max(glanceLeast, time.Duration(position)*glancePerRank))
	if proto.Equal(ageless, q.told) {
		return
	}
	q.told, q.position = ageless, position
	q.box.Put(topicPlace, func() (M, bool) { return event(), true })
}

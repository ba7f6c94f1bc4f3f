package service

import (
	"time"

	"google.golang.org/protobuf/proto"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// queueNews tells a waiting caller how it stands: at once, and again when that has changed. How often it is worth to look
// grows with the distance, up front once a second, so that a long queue does not keep reading itself.
type queueNews struct {
	box  *outbox[*lockv1.AcquireResponse]
	told *lockv1.Queued // without ages
	next time.Time
}

const (
	glanceLeast   = time.Second
	glancePerRank = 250 * time.Millisecond
)

// due is closed when it is time to tell again; nil if only the predecessor can change anything.
func (q *queueNews) due(turn recipes.Turn) <-chan struct{} {
	if q.told != nil && turn.Position == 1 && q.told.GetPosition() == 1 {
		return nil
	}
	return after(time.Until(q.next))
}

func (q *queueNews) tell(turn recipes.Turn) {
	q.next = time.Now().Add(max(glanceLeast, time.Duration(turn.Position)*glancePerRank))
	queued := &lockv1.Queued{Position: int32(turn.Position)}
	ageless := &lockv1.Queued{Position: int32(turn.Position)}
	for _, holder := range turn.Holders {
		queued.Holders = append(queued.Holders, contenderOnWire(holder))
		holder.Age = 0
		ageless.Holders = append(ageless.Holders, contenderOnWire(holder))
	}
	if proto.Equal(ageless, q.told) {
		return
	}
	q.told = ageless
	q.box.put(topicPlace, func() (*lockv1.AcquireResponse, bool) {
		return &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Queued{Queued: queued}}, true
	})
}

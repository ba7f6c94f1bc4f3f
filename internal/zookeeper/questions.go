package zookeeper

// A question is a request that was sent. Servers answer them in the order in which they were sent, as the Java client demands
// too; pings and the like, which have negative numbers, are not counted.
type question struct {
	xid, kind int32
	path      string      // of lists
	own       *ownRequest // nil if it is the library's
	batch     *batch      // of own
}

// noQuestion has a number that no request has.
var noQuestion = question{xid: -1}

// questions are those under way, in the order in which they are answered. Room that they had is used again.
type questions struct {
	list []question
	over int // of the list, how many were answered
}

func (q *questions) all() []question { return q.list[q.over:] }

func (q *questions) oldest() (oldest question, ok bool) {
	if q.over == len(q.list) {
		return oldest, false
	}
	return q.list[q.over], true
}

// add puts the newest one behind the others.
func (q *questions) add(newest question) {
	if len(q.list) == cap(q.list) && q.over > len(q.list)/2 {
		left := copy(q.list, q.all())
		clear(q.list[left:])
		q.list, q.over = q.list[:left], 0
	}
	q.list = append(q.list, newest)
}

// drop forgets the oldest one, which was answered.
func (q *questions) drop() {
	q.list[q.over] = question{}
	if q.over++; q.over == len(q.list) {
		q.list, q.over = q.list[:0], 0
	}
}

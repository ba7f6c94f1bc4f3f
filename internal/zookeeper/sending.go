package zookeeper

import (
	"encoding/binary"
	"math"
)

// What is written over a connection lines up first: what is noted as asked and what is to be written are in one order. The goroutine with the
// turn to write writes all that stands there, in one piece. While many requests are under way those of a lease's callers wait for the next
// writer. So they share writes, and the server's work; see mostAlone.

const (
	// mostAlone is how many requests may be under way when another one is written at once and alone.
	mostAlone = 8

	// mostUnanswered is how many bytes of our own requests may be on their way when a goroutine that must not wait writes one more. A socket's
	// buffer takes more.
	mostUnanswered = 8 << 10

	// mostLinedUp is how many bytes line up before a goroutine that must not wait has to find another way.
	mostLinedUp = 256 << 10

	// mostRoom is how many bytes of room for what lines up are kept, twice for each connection.
	mostRoom = 4 << 10
)

// send writes a batch, and says whether it did. The answers come when the connection ends, at the latest.
func (w *wire) send(b *batch) bool {
	w.writing <- struct{}{} // and not a mutex, for which virtual time does not wait
	_, ok := w.lineUp(b, math.MaxInt)
	if ok {
		w.writeLined(math.MaxInt)
	}
	w.yield()
	return ok
}

// sendAtOnce is send for those who must not wait: it writes only what the kernel certainly takes, which is little while little is unanswered.
// It does not if more than so many bytes would line up.
func (w *wire) sendAtOnce(b *batch, most int) bool {
	crowd, ok := w.lineUp(b, most)
	switch {
	case !ok:
		return false
	case crowd:
		w.callWriter()
	default:
		select {
		case w.writing <- struct{}{}:
			w.writeLined(mostUnanswered) // others may have lined up more meanwhile
			w.yield()
		default: // yield of the one that has the turn sees it
		}
	}
	return true
}

// callWriter has what lines up written soon, by a goroutine that may wait.
func (w *wire) callWriter() {
	if !w.called.CompareAndSwap(false, true) {
		return
	}
	go func() {
		w.writing <- struct{}{}
		w.called.Store(false)
		w.writeLined(math.MaxInt)
		w.yield()
	}()
}

// yield gives the turn to write back. Those who found it taken have lined up.
func (w *wire) yield() {
	<-w.writing
	w.asking.Lock()
	more := len(w.lined) > 0
	w.asking.Unlock()
	if more {
		w.callWriter()
	}
}

// lineUp notes what is asked, unless that must not be sent any more or more than so many bytes would line up, and has it written by the next who
// writes. crowd says whether others are to come before it is written.
func (w *wire) lineUp(b *batch, most int) (crowd, ok bool) {
	withdrawn := b.requests[0].unless != nil && b.requests[0].unless.Load()
	if withdrawn || w.session.fenced.Load() || !w.welcomed.Load() {
		return false, false
	}
	b.known = w.session.client.shown.zxid.Load()
	w.asking.Lock()
	defer w.asking.Unlock()
	if w.over || len(w.lined)+b.size() > most {
		return false, false
	}
	crowd = len(w.asked.all()) > mostAlone || w.unanswered+b.size() > mostUnanswered
	if w.requested = b.asked.sent; w.requested == 0 {
		w.requested = w.session.now()
	}
	count := int32(len(b.requests))
	before := w.session.ownAsked.Add(count) - count
	for i := range b.requests {
		request := &b.requests[i] // not a copy: its answer may be taken meanwhile, when the connection ends
		xid := ownXid(before + int32(i))
		w.asked.add(question{xid: xid, kind: request.kind, path: request.path, own: request, batch: b})
		w.lined = binary.BigEndian.AppendUint32(w.lined, uint32(8+len(request.body)))
		w.lined = binary.BigEndian.AppendUint32(w.lined, uint32(xid))
		w.lined = binary.BigEndian.AppendUint32(w.lined, uint32(request.kind))
		w.lined = append(w.lined, request.body...)
	}
	w.unanswered += b.size()
	return crowd, true
}

// writeLined writes what has lined up, unless that is more than so many bytes. Its caller has the turn to write.
func (w *wire) writeLined(most int) {
	w.asking.Lock()
	frames, over := w.lined, w.over
	nothing := len(frames) == 0 || len(frames) > most
	if !nothing {
		w.lined, w.room = w.room[:0], nil
	}
	w.asking.Unlock()
	if nothing {
		return
	}
	if until, move := w.writes.move(w.session.timeout()); move {
		_ = w.Conn.SetWriteDeadline(until) // fails only once the connection is closed
	}
	if over || w.session.fenced.Load() { // and everybody has been told that it is lost
		w.drop()
	} else if _, err := w.Conn.Write(frames); err != nil {
		w.drop() // a part of it may have been written
	}
	if cap(frames) <= mostRoom {
		w.room = frames[:0]
	}
}

// ownXid is the number of the request of our own before which there were so many.
func ownXid(before int32) int32 { return firstOwnXid | before&(firstOwnXid-1) }

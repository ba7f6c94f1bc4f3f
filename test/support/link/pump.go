package link

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// window is how many bytes a pump holds before it stops reading.
const window = 8 << 20

// A pump carries the bytes of one connection in one direction: one goroutine collects them into a queue, another
// delivers from it. All but the channels is guarded by the link's mutex.
type pump struct {
	connection *connection
	direction  Direction
	awake      chan struct{} // capacity one: the queue or what governs it has changed
	room       chan struct{} // capacity one: the queue may have room again

	queue    []parcel
	size     int       // bytes in the queue
	last     time.Time // when the last parcel in the queue is due
	ended    bool      // the source has ended
	lost     bool      // bytes were lost, so that nothing may follow them
	finished bool      // the end of the stream was delivered, or never will be
}

// A parcel is what is delivered at once.
type parcel struct {
	data  []byte
	due   time.Time
	end   ending
	frame *Frame // the request in data
	trap  *Trap  // what befalls the reply in data
	cut   bool   // deliver a reset in place of it
}

// An ending is how a stream ended.
type ending int

const (
	notEnded ending = iota
	endedInOrder
	endedByReset
)

func newPump(c *connection, direction Direction) *pump {
	return &pump{connection: c, direction: direction, awake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// collect queues what the source sends, until it or the connection ends.
func (p *pump) collect(ctx context.Context, source net.Conn) {
	reader := newReader(p)
	buffer := make([]byte, 32<<10)
	for p.awaitRoom(ctx) {
		count, err := source.Read(buffer)
		parcels := reader.parcels(buffer[:count])
		if err != nil {
			p.add(append(parcels, reader.rest(), parcel{end: endingOf(err)}))
			return
		}
		p.add(parcels)
	}
}

func endingOf(err error) ending {
	if errors.Is(err, io.EOF) {
		return endedInOrder
	}
	return endedByReset
}

// add queues parcels.
func (p *pump) add(parcels []parcel) {
	l := p.connection.link
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, next := range parcels {
		if len(next.data) > 0 || next.end != notEnded {
			p.put(next)
		}
	}
	p.connection.used()
	notify(p.awake)
	l.announce()
}

// put queues a parcel. The mutex is held.
func (p *pump) put(next parcel) {
	next.due = p.schedule(p.connection.link.ways[p.direction])
	p.queue = append(p.queue, next)
	p.size += len(next.data)
	p.ended = p.ended || next.end != notEnded
}

// schedule is when a parcel that arrives now is due: after those before it.
func (p *pump) schedule(w way) time.Time {
	due := time.Now().Add(w.delay)
	if w.jitter > 0 {
		due = due.Add(rand.N(w.jitter))
	}
	if due.Before(p.last) {
		due = p.last
	}
	p.last = due
	return due
}

// awaitRoom returns true when the pump may take more in, false when the connection has ended.
func (p *pump) awaitRoom(ctx context.Context) bool {
	for p.full() {
		select {
		case <-p.room:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

func (p *pump) full() bool {
	p.connection.link.mutex.Lock()
	defer p.connection.link.mutex.Unlock()
	return p.size >= window
}

// deliver hands over what is queued, until the connection ends.
func (p *pump) deliver(ctx context.Context, destination *net.TCPConn) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, wait, ok := p.take(time.Now())
		if ok {
			p.hand(next, destination)
			continue
		}
		timer.Reset(wait)
		select {
		case <-p.awake:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// never is how long a pump waits for a parcel of which it does not know when it may go.
const never = time.Duration(1<<63 - 1)

// take removes the first parcel if it may go now; if not, it tells after how long to ask again unless awoken before.
func (p *pump) take(now time.Time) (next parcel, wait time.Duration, ok bool) {
	l := p.connection.link
	l.mutex.Lock()
	defer l.mutex.Unlock()
	mode := l.ways[p.direction].mode
	if mode == Drop || p.lost {
		p.swallow()
	}
	if mode != Pass || len(p.queue) == 0 || p.queue[0].trap.holds() {
		return parcel{}, never, false
	}
	if wait := p.queue[0].due.Sub(now); wait > 0 {
		return parcel{}, wait, false
	}
	return p.pop(), 0, true
}

// pop removes the first parcel and decides what becomes of it. The mutex is held.
func (p *pump) pop() parcel {
	next := p.queue[0]
	if slice := p.connection.link.ways[p.direction].slice; slice > 0 && len(next.data) > slice {
		p.queue[0] = parcel{data: next.data[slice:], due: time.Now().Add(time.Millisecond)}
		next.data = next.data[:slice]
	} else {
		p.queue[0] = parcel{}
		p.queue = p.queue[1:]
	}
	p.size -= len(next.data)
	notify(p.room)
	if next.frame != nil {
		next.cut = p.connection.judge(*next.frame)
	}
	if next.trap.cuts() {
		next.cut = true
		next.trap.spring()
	}
	return next
}

// hand delivers a parcel.
func (p *pump) hand(next parcel, destination *net.TCPConn) {
	switch {
	case next.cut || next.end == endedByReset:
		p.connection.finally()
	case next.end == endedInOrder:
		destination.CloseWrite() // if it fails the other direction will tell
		p.finish()
	default:
		if _, err := destination.Write(next.data); err != nil {
			p.fail()
		}
	}
}

// swallow loses what is queued. The mutex is held.
func (p *pump) swallow() {
	p.lost = p.lost || len(p.queue) > 0
	p.finished = p.finished || p.ended
	p.queue, p.size = nil, 0
	notify(p.room)
	p.connection.link.announce()
	p.connection.settle()
}

// finish notes that the stream has ended and that the destination knows.
func (p *pump) finish() {
	p.connection.link.mutex.Lock()
	defer p.connection.link.mutex.Unlock()
	p.finished = true
	p.connection.settle()
}

// fail notes that the destination takes no more. What it sent before is still on its way back, and its end after it.
func (p *pump) fail() {
	p.connection.link.mutex.Lock()
	defer p.connection.link.mutex.Unlock()
	p.lost, p.finished = true, true
	p.swallow()
}

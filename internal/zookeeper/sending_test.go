package zookeeper

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// A slowPipe is a connection that takes each write only when it is let.
type slowPipe struct {
	net.Conn

	let    chan struct{}
	writes [][]byte
	closed bool
}

func (p *slowPipe) Write(frames []byte) (int, error) {
	<-p.let
	p.writes = append(p.writes, bytes.Clone(frames))
	return len(frames), nil
}

func (*slowPipe) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*slowPipe) SetWriteDeadline(time.Time) error { return nil }

func (p *slowPipe) Close() error {
	p.closed = true
	return nil
}

// written are the numbers of the requests of our own in each write.
func (p *slowPipe) written() (all string) {
	for _, frames := range p.writes {
		var numbers []int32
		for ; len(frames) > 0; frames = frames[frameLength+binary.BigEndian.Uint32(frames):] {
			numbers = append(numbers, int32(binary.BigEndian.Uint32(frames[frameLength:]))&(firstOwnXid-1))
		}
		all += fmt.Sprint(numbers)
	}
	return all
}

func (p *slowPipe) wire(t *testing.T) (w *wire, ask func()) {
	t.Helper()
	client := &Client{config: Config{Clock: func() time.Duration { return time.Hour }}}
	w = newWire(p, &Session{client: client, life: life{negotiated: 6 * time.Second}}, func() {})
	w.handshake.sent = 1
	w.welcomed.Store(true)
	return w, func() {
		t.Helper()
		if !w.sendAtOnce(newBatch(func(*batch) {}, checkOf("/", anyVersion).request()), mostLinedUp) {
			t.Error("not sent")
		}
	}
}

// What is asked while somebody writes is written right after, in its order, and by no goroutine that must not wait.
func TestWhatIsAskedWhileOthersWriteIsWrittenAfterIt(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		pipe := &slowPipe{let: make(chan struct{})}
		_, ask := pipe.wire(t)
		go ask()
		synctest.Wait()
		ask()
		ask()
		pipe.let <- struct{}{}
		pipe.let <- struct{}{}
		synctest.Wait()
		expect.Same(t, "writes", pipe.written(), "[0][1 2]")
	})
}

// Requests share a write where many are under way.
func TestManyRequestsShareAWrite(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		pipe := &slowPipe{let: make(chan struct{}, 100)}
		for range 100 {
			pipe.let <- struct{}{}
		}
		w, ask := pipe.wire(t)
		for range mostAlone + 1 {
			ask()
		}
		expect.Same(t, "alone", len(pipe.writes), mostAlone+1)
		pipe.writes = nil
		for range 5 {
			ask()
		}
		synctest.Wait()
		expect.Same(t, "together", pipe.written(), "[9 10 11 12 13]")
		for xid := range int32(14) {
			expect.Same(t, "answered", w.answered(ownXid(xid)).xid, ownXid(xid))
		}
		expect.Same(t, "bytes under way", w.unanswered, 0)
		ask()
		expect.Same(t, "alone again", pipe.written(), "[9 10 11 12 13][14]")
	})
}

// A request that was told to be lost is not written after that.
func TestWhatIsLostIsNotWritten(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		pipe := &slowPipe{let: make(chan struct{})}
		w, ask := pipe.wire(t)
		go ask()
		synctest.Wait()
		lost := 0
		sent := w.sendAtOnce(newBatch(func(*batch) { lost++ }, checkOf("/", anyVersion).request()), mostLinedUp)
		expect.Same(t, "sent", sent, true)
		w.abandon()
		expect.Same(t, "lost", lost, 1)
		pipe.let <- struct{}{}
		synctest.Wait()
		expect.Same(t, "writes", pipe.written(), "[0]")
		expect.Same(t, "closed", pipe.closed, true)
		expect.Same(t, "sent when it is over", w.sendAtOnce(newBatch(func(*batch) {}, checkOf("/", anyVersion).request()), mostLinedUp), false)
	})
}

// What is long, or comes behind much, is written by those who may wait; those who must not leave it to them.
func TestLongRequestsAreWritten(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		pipe := &slowPipe{let: make(chan struct{})}
		w, ask := pipe.wire(t)
		long := func() *batch {
			return newBatch(func(*batch) {}, ownRequest{kind: opSetData, body: make([]byte, mostLinedUp)})
		}
		expect.Same(t, "by one who must not wait", w.sendAtOnce(long(), mostLinedUp), false)
		sent := make(chan bool)
		go func() { sent <- w.send(long()) }()
		synctest.Wait()
		ask()
		ask()
		go func() { sent <- w.send(long()) }()
		synctest.Wait()
		close(pipe.let)
		for range 2 {
			expect.Same(t, "sent", <-sent, true)
		}
		synctest.Wait()
		expect.Same(t, "numbers", strings.ReplaceAll(pipe.written(), "][", " "), "[0 1 2 3]")
	})
}

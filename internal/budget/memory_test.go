package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func replyOf(size int) *configv1.GetResponse {
	return &configv1.GetResponse{Entry: &configv1.Entry{Content: &configv1.Entry_Value{Value: make([]byte, size)}}}
}

func TestLargeAnswersAreGivenWhileThereIsMemory(t *testing.T) {
	t.Parallel()
	used := 0
	m := NewMemory(1 << 20)
	m.inUse = func() int { return used }
	ask := func(size int) string {
		_, err := m.Unary(t.Context(), nil, nil, func(context.Context, any) (any, error) { return replyOf(size), nil })
		return told(err)
	}
	same(t, "large", ask(900_000), "OK")
	used = 1 << 19
	same(t, "too large", ask(900_000), "ResourceExhausted MEMORY_LIMIT")
	same(t, "not too large", ask(400_000), "OK")
	used = 1 << 30
	same(t, "small", ask(60_000), "OK")
	m.most = 0
	same(t, "large without a limit", ask(900_000), "OK")
	same(t, "what is in use", NewMemory(1).inUse() > 1<<10, true)
}

func TestGarbageIsNoReasonToRefuse(t *testing.T) { // not beside tests that use memory
	m := NewMemory(NewMemory(1).inUse() + 256<<20) // a quarter of the garbage
	for range 1000 {
		garbage = make([]byte, 1<<20)
		same(t, "check", m.room(900_000), nil)
	}
}

var garbage []byte // so that it is on the heap

// A takingStream takes what it is sent.
type takingStream struct {
	grpc.ServerStream

	ctx  context.Context
	sent int
}

func (s *takingStream) Context() context.Context { return s.ctx }
func (s *takingStream) SendMsg(any) error        { s.sent++; return nil }

func TestAStreamWaitsForMemoryForAsLongAsItLives(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var used atomic.Int64
		used.Store(1 << 20)
		m := NewMemory(1 << 20)
		m.inUse = func() int { return int(used.Load()) }
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		taking := &takingStream{ctx: ctx}
		stream := sparing{taking, m}
		same(t, "small", stream.SendMsg(replyOf(1)), nil)
		time.AfterFunc(time.Second, func() { used.Store(0) })
		began := time.Now()
		same(t, "large", stream.SendMsg(replyOf(900_000)), nil)
		same(t, "waited", time.Since(began).Truncate(time.Second), time.Second)
		used.Store(1 << 20)
		same(t, "large, and never", stream.SendMsg(replyOf(900_000)), context.DeadlineExceeded)
		same(t, "sent", taking.sent, 2)
	})
}

// A slowStream takes its time with each message.
type slowStream struct {
	takingStream
	most, now *atomic.Int64
}

func (s *slowStream) SendMsg(any) error {
	if now := s.now.Add(1); now > s.most.Load() {
		s.most.Store(now)
	}
	time.Sleep(time.Second)
	s.now.Add(-1)
	return nil
}

// Messages that are sent at once have room for all of them, though none is in use when they are looked at.
func TestLargeMessagesAreNotAllLetThroughAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		m := NewMemory(1 << 20)
		m.inUse = func() int { return 0 }
		var most, now atomic.Int64
		var streams sync.WaitGroup
		for range 20 {
			stream := sparing{&slowStream{takingStream{ctx: t.Context()}, &most, &now}, m}
			streams.Go(func() { same(t, "large", stream.SendMsg(replyOf(400_000)), nil) })
		}
		streams.Wait()
		same(t, "at once", most.Load(), 2)
	})
}

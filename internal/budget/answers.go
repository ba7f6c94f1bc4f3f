package budget

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/service"
)

// smallMessage is what is always sent: a caller that does not read can have no more than a stream's worth of them.
const smallMessage = 64 << 10

// Memory keeps answers from piling up that their callers do not read: the transport takes over a message at once, whatever the caller
// reads, and does not tell when it is gone. So a large one is given to it only while there is memory to spare.
type Memory struct {
	most  int                // bytes in use; 0 for any number
	inUse func() (bytes int) // now, with garbage
	live  func() (bytes int) // what the last collection left

	collecting *sync.Mutex
	collected  *time.Time    // last, because of us
	sending    *atomic.Int64 // bytes of streams' large messages on their way to the transport, which may not be in use yet
}

// NewMemory allows so many bytes in use; any number if it is 0.
func NewMemory(most int) Memory {
	return Memory{
		most: most, inUse: func() int { return sampled("/memory/classes/heap/objects:bytes") },
		live: func() int { return sampled("/gc/heap/live:bytes") }, collecting: new(sync.Mutex),
		collected: new(time.Time), sending: new(atomic.Int64),
	}
}

// sampled is what the runtime measures under this name.
func sampled(name string) int {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// room says whether a message of that size may be sent: errMemoryLimit if it is large and there is no memory for it.
func (m Memory) room(size int) error {
	return m.fits(size, func() bool { return m.inUse()+size <= m.most })
}

func (m Memory) fits(size int, fit func() bool) error {
	if m.most == 0 || size <= smallMessage || fit() {
		return nil
	}
	if m.collect(); fit() {
		return nil
	}
	return service.MemoryLimit(m.most)
}

// reserve is room for a stream's message beside those of others, which counts until it has been sent.
func (m Memory) reserve(size int) (sent func(), err error) {
	err = m.fits(size, func() bool {
		counted := m.sending.Add(int64(size))
		if m.inUse()+int(counted) <= m.most {
			return true
		}
		m.sending.Add(-int64(size))
		return false
	})
	if m.most == 0 || size <= smallMessage || err != nil {
		return func() {}, err
	}
	return func() { m.sending.Add(-int64(size)) }, nil
}

// collect has garbage collected, which counts as in use until then, but not again and again.
func (m Memory) collect() {
	m.collecting.Lock()
	defer m.collecting.Unlock()
	if time.Since(*m.collected) > time.Second {
		runtime.GC()
		*m.collected = time.Now()
	}
}

// spare says whether there is memory for more of a caller that has much: errMemoryLimit if what is in use after a collection is more than the
// most.
func (m Memory) spare() error {
	if m.most == 0 || m.inUse() <= m.most {
		return nil
	}
	m.collect()
	return m.short()
}

// short is spare without a collection.
func (m Memory) short() error {
	if m.most == 0 || min(m.inUse(), m.live()) <= m.most {
		return nil
	}
	return service.MemoryLimit(m.most)
}

// Unary is an interceptor: it gives a large answer only while there is memory for it, and has values read in turn.
func (m Memory) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	answer := func() (bytes int, err error) {
		if reply, err = handler(ctx, request); err != nil {
			return 0, err
		}
		bytes = proto.Size(reply.(proto.Message))
		return bytes, m.room(bytes)
	}
	if of := SlotOf(caller.Of(ctx)).account; of != nil && of.reads[info.FullMethod] != nil {
		err = of.reads[info.FullMethod].do(ctx, m, answer)
		return reply, err
	}
	_, err = answer()
	return reply, err
}

// Stream is an interceptor: it has large messages wait for memory.
func (m Memory) Stream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(server, sparing{stream, m})
}

// A sparing stream sends large messages only while there is memory for them.
type sparing struct {
	grpc.ServerStream

	memory Memory
}

// SendMsg implements grpc.ServerStream. It waits for memory, as it does for a caller that does not read: its handler
// knows how long is too long.
func (s sparing) SendMsg(message any) error {
	size := proto.Size(message.(proto.Message))
	sent, err := s.memory.reserve(size)
	for ; err != nil; sent, err = s.memory.reserve(size) {
		select {
		case <-time.After(memoryPause):
		case <-s.Context().Done():
			return context.Cause(s.Context())
		}
	}
	defer sent()
	return s.ServerStream.SendMsg(message)
}

// memoryPause is how long a stream waits before it looks again whether there is memory.
const memoryPause = 50 * time.Millisecond

// SendHeader implements grpc.ServerStream. It fails only for a caller that has gone.
func (s sparing) SendHeader(header metadata.MD) error {
	if s.ServerStream.SendHeader(header) != nil {
		return context.Canceled
	}
	return nil
}

// What one caller may have on its way from the ensemble at once.
const (
	mostRead  = 4 << 20  // bytes of values, as far as they can be foreseen
	leastRead = 64 << 10 // what a small one counts

	oneReadIn = 32 // so many is tried though there is no memory for a large value, so that it shows when values have become small
)

// The reads of one caller. All values come from the ensemble in one line, in which a few large ones keep everybody waiting, so each
// caller has only some there at once. That the next value is as large as the last is what can be foreseen; pages of values have a line of their
// own.
type reads struct {
	share share
	first int // bytes

	mu      sync.Mutex
	usual   int // bytes of the last value, or half of what it was before
	refused int // reads
}

func newReads(first int, all *sum) *reads {
	return &reads{share: share{semaphore.NewWeighted(mostRead), all}, first: first, usual: first}
}

// do reads a value when it is the caller's turn, unless a large one is foreseen for which there is no memory.
func (r *reads) do(ctx context.Context, memory Memory, value func() (bytes int, err error)) error {
	counted, release, err := r.turn(ctx)
	if err != nil {
		return err
	}
	defer release()
	size := counted
	defer func() { r.learn(size) }()
	if err := memory.room(counted); err != nil && counted > r.first && !r.tries() {
		return err
	}
	size, err = value()
	return err
}

// turn waits for the caller's turn, and says how much is foreseen then. It has taken no less.
func (r *reads) turn(ctx context.Context) (counted int, release func(), err error) {
	for {
		took := r.next()
		if release, err = r.share.acquire(ctx, int64(took)); err != nil {
			return 0, nil, err
		}
		if counted = r.next(); counted <= took {
			return counted, release, nil
		}
		release()
	}
}

// next is what a read counts now.
func (r *reads) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return min(r.usual, mostRead)
}

// learn notes how large a value was.
func (r *reads) learn(size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if size > 0 { // of what is missing, nothing is learnt
		r.usual = max(size, r.usual/2, leastRead)
	}
}

// tries says whether to read though there is no memory.
func (r *reads) tries() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused++
	return r.refused%oneReadIn == 0
}

package budget

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/service"
)

// smallMessage is what is always sent: a caller that does not read can have no more than a stream's worth of them.
const smallMessage = 64 << 10

// Memory keeps answers from piling up that their callers do not read: the transport takes over a message at once, whatever the caller
// reads, and tells nobody when it is gone. So a large one is given to it only while there is memory to spare.
type Memory struct {
	most  int                // bytes in use
	inUse func() (bytes int) // now, with garbage
	live  func() (bytes int) // what the last collection left

	collecting *sync.Mutex
	collected  *time.Time // last, because of us

	sending *sending // large messages of streams that are on their way to the transport, and may not be in use yet
}

// A sending is so many bytes.
type sending struct {
	mu    sync.Mutex
	bytes int
}

// NewMemory allows so many bytes in use; any number if it is 0.
func NewMemory(most int) Memory {
	return Memory{most: most, inUse: heapInUse, live: heapLive, collecting: new(sync.Mutex), collected: new(time.Time), sending: new(sending)}
}

// heapInUse counts what the process has allocated and not freed yet.
func heapInUse() int { return sampled("/memory/classes/heap/objects:bytes") }

// heapLive counts what was still in use after the last collection.
func heapLive() int { return sampled("/gc/heap/live:bytes") }

// sampled is what the runtime measures under this name.
func sampled(name string) int {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// check says whether a message may be sent: errMemoryLimit if it is large and there is no memory for it.
func (m Memory) check(message any) error {
	return m.room(proto.Size(message.(proto.Message)))
}

// room is check for a message of that size.
func (m Memory) room(size int) error {
	if m.most == 0 || size <= smallMessage || m.inUse()+size <= m.most {
		return nil
	}
	if m.collect(); m.inUse()+size <= m.most {
		return nil
	}
	return service.MemoryLimit(m.most)
}

// reserve counts a stream's message of that size, which is about to be sent, until it has been: errMemoryLimit if it is large and there is no
// memory for it beside the others.
func (m Memory) reserve(size int) (sent func(), err error) {
	if m.most == 0 || size <= smallMessage {
		return func() {}, nil
	}
	if !m.count(size) {
		if m.collect(); !m.count(size) {
			return nil, service.MemoryLimit(m.most)
		}
	}
	return func() {
		m.sending.mu.Lock()
		defer m.sending.mu.Unlock()
		m.sending.bytes -= size
	}, nil
}

// count counts a message if there is memory for it.
func (m Memory) count(size int) bool {
	m.sending.mu.Lock()
	defer m.sending.mu.Unlock()
	if m.inUse()+m.sending.bytes+size > m.most {
		return false
	}
	m.sending.bytes += size
	return true
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

// spare says whether there is memory for more of somebody who has much: errMemoryLimit if what is in use after a collection is more than the
// most.
func (m Memory) spare() error {
	if m.most == 0 || m.inUse() <= m.most {
		return nil
	}
	if m.collect(); min(m.inUse(), m.live()) <= m.most {
		return nil
	}
	return service.MemoryLimit(m.most)
}

// short is spare without a collection.
func (m Memory) short() error {
	if m.most == 0 || min(m.inUse(), m.live()) <= m.most {
		return nil
	}
	return service.MemoryLimit(m.most)
}

// Unary is an interceptor: it gives a large answer only while there is memory for it.
func (m Memory) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	answer := func() (bytes int, err error) {
		if reply, err = handler(ctx, request); err != nil {
			return 0, err
		}
		return proto.Size(reply.(proto.Message)), m.check(reply)
	}
	if quota := SlotOf(caller.Of(ctx)).quota; quota != nil {
		if reads := quota.reads[info.FullMethod]; reads != nil {
			return reply, reads.do(ctx, m, answer)
		}
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

// SendMsg implements grpc.ServerStream. It waits for memory, as it does for a caller that does not read: whoever sends
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

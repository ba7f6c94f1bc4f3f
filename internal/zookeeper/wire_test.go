package zookeeper

import (
	"net"
	"testing"
	"time"
)

// A recorder is a connection that keeps what is written to it.
type recorder struct {
	net.Conn

	frames [][]byte
}

func (r *recorder) Write(frame []byte) (int, error) {
	r.frames = append(r.frames, frame)
	return len(frame), nil
}

func (r *recorder) RemoteAddr() net.Addr { return &net.TCPAddr{} }

func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

func TestAPingIsNotSentBehindARequest(t *testing.T) {
	t.Parallel()
	now := time.Hour
	client := &Client{config: Config{Clock: func() time.Duration { return now }}}
	written := &recorder{}
	w := newWire(written, &Session{client: client, life: life{negotiated: 6 * time.Second}}, func() {})
	w.handshake.sent = 1
	ping := []byte{0, 0, 0, 8, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 11}
	request := []byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 3}
	w.welcomed.Store(true)
	for _, step := range []struct {
		pause time.Duration
		frame []byte // nil for a request of our own
		sent  bool
	}{
		{0, ping, true}, // nothing was asked before
		{0, request, true},
		{999 * time.Millisecond, ping, false},
		{time.Millisecond, ping, true}, // a sixth of the timeout after the request
		{time.Second, request, true},
		{time.Second, request, true},
		{500 * time.Millisecond, ping, false},
		{time.Hour, nil, true},
		{999 * time.Millisecond, ping, false},
		{time.Millisecond, ping, true},
	} {
		now += step.pause
		before := len(written.frames)
		if step.frame == nil {
			w.send(&batch{requests: []ownRequest{checkOf("/", anyVersion).request()}})
		} else if n, err := w.Write(step.frame); n != len(step.frame) || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if sent := len(written.frames) > before; sent != step.sent {
			t.Errorf("%v after the step before, %x was sent: %v", step.pause, step.frame, sent)
		}
	}
}

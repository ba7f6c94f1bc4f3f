package zookeeper

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// A babbler is a server whose answers are decided by bytes: each answer begins with a byte that says of which kind it is, and
// another that says how many bytes of what follows belong to it. When there are no more, it answers as a server does.
type babbler struct {
	zxid atomic.Int64 // of the newest answer

	heartbeats bool          // whether transactions are answered so, too: heartbeats are such
	regranted  time.Duration // the timeout that a session gets which comes back; 0 is what it asks for

	mu                 sync.Mutex // several connections are served at a time
	greetings, answers []byte
	dials              int
}

// The kinds of answers.
const (
	answerGood    = iota // as a server does
	answerBody           // with a body of these bytes
	answerError          // with an error whose code is the first of these bytes
	answerRaw            // with these bytes as they are
	answerEvent          // with an event that has this body, and as a server does
	answerNothing        // the connection is closed
	answerKinds
)

func (b *babbler) next(request []byte, first bool) (kind int, content []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	script := &b.answers
	switch {
	case first:
		script = &b.greetings
	case kindOf(request) == opMulti && !b.heartbeats:
		return answerGood, nil
	}
	if len(*script) < 2 {
		return answerGood, nil
	}
	kind = int((*script)[0]) % answerKinds
	end := min(2+int((*script)[1]), len(*script))
	content, *script = (*script)[2:end], (*script)[end:]
	return kind, content
}

func kindOf(request []byte) int32 { return int32(binary.BigEndian.Uint32(request[4:])) }

// dial connects to the babbler.
func (b *babbler) dial(context.Context, string, string) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dials++; b.dials > 20 {
		return nil, errors.New("nobody answers")
	}
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		for first := true; ; first = false {
			request, err := readFrame(server)
			if err != nil || b.answer(server, request, first) != nil {
				return
			}
		}
	}()
	return client, nil
}

func readFrame(from io.Reader) ([]byte, error) {
	head := make([]byte, frameLength)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head))
	_, err := io.ReadFull(from, frame)
	return frame, err
}

func (b *babbler) answer(to io.Writer, request []byte, first bool) error {
	kind, content := b.next(request, first)
	if kind == answerEvent && !first {
		if _, err := to.Write(framed(b.header(eventXid, 0), content)); err != nil {
			return err
		}
		kind = answerGood
	}
	switch kind {
	case answerBody:
		content = framed(b.head(request, first, 0), content)
	case answerError:
		content = append(content, 1)
		content = framed(b.head(request, first, -int32(content[0])))
	case answerRaw:
	case answerNothing:
		return io.EOF
	default:
		content = framed(b.head(request, first, 0), b.good(request, first))
	}
	_, err := to.Write(content)
	return err
}

// head is what an answer begins with: to the greeting, up to where the password begins.
func (b *babbler) head(request []byte, first bool, code int32) []byte {
	if first {
		head := binary.BigEndian.AppendUint32(nil, 0)
		if b.regranted > 0 && binary.BigEndian.Uint64(request[16:]) != 0 {
			head = binary.BigEndian.AppendUint32(head, uint32(b.regranted.Milliseconds()))
		} else {
			head = append(head, request[12:16]...) // the timeout that was asked for
		}
		return binary.BigEndian.AppendUint64(head, max(7, binary.BigEndian.Uint64(request[16:])))
	}
	return b.header(int32(binary.BigEndian.Uint32(request)), code)
}

// header has a new transaction's number, as if whatever is asked for were one.
func (b *babbler) header(xid, code int32) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(xid))
	head = binary.BigEndian.AppendUint64(head, uint64(b.zxid.Add(1)))
	return binary.BigEndian.AppendUint32(head, uint32(code))
}

// good is a body as a server would send one.
func (b *babbler) good(request []byte, first bool) []byte {
	text := func(s string) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...) }
	if first {
		return text(string(make([]byte, passwordBytes)))
	}
	stat := make([]byte, statBytes)
	end := []byte{0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff}
	switch kindOf(request) {
	case opCreate, opCreateContainer:
		return text("/d/_c_0-lock-0000000001")
	case opCreate2:
		return append(text(pathIn(request[8:])+"0000000001"), stat...)
	case opGetData:
		return append(text("data"), stat...)
	case opExists, opSetData:
		return stat
	case opGetChildren2:
		return append(append([]byte{0, 0, 0, 1}, text("child")...), stat...)
	case opGetACL:
		return append(append([]byte{0, 0, 0, 1, 0, 0, 0, 31}, append(text("world"), text("anyone")...)...), stat...)
	case opMulti:
		return append([]byte{0, 0, 0, opCheck, 0, 0xff, 0xff, 0xff, 0xff}, end...)
	}
	return nil
}

func framed(parts ...[]byte) []byte {
	frame := bytes.Join(parts, nil)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

// Whatever a server answers, no call brings down the process, takes for ever or asks for memory that the answer does not
// fill, and no session is valid for longer than its timeout.
func FuzzAnswersOfAServer(f *testing.F) {
	for _, greeting := range []string{
		"\x03\x0cHTTP/1.1 400", "\x03\x04\x00\x00\x00\x00", "\x03\x04\xff\xff\xff\xff", "\x03\x04\x00\x00\x00\x24",
		"\x01\x00", "\x01\x04\x00\x00\x00\x10",
		"\x01\x04\x7f\xff\xff\xff", "\x03\x28\x00\x00\x00\x24" + string(make([]byte, 36)), "\x00\x00\x00\x00\x05\x00", "\x05\x00", "\x02\x01\x70",
	} {
		f.Add([]byte(greeting), []byte{}, false, uint8(0))
		f.Add([]byte("\x00\x00"+greeting), []byte("\x05\x00"), true, uint8(1))
	}
	for _, answer := range []string{
		"", "\x03\x04\x00\x00\x00\x01", "\x03\x08\x00\x00\x00\x04\xff\xff\xff\xff", "\x03\x04\x40\x00\x00\x00", "\x01\x00",
		"\x01\x04\xff\xff\xff\xff", "\x01\x04\x7f\xff\xff\xff",
		"\x01\x01\x00", "\x01\x09\xff\xff\xff\xff\x01\xff\xff\xff\xff", "\x01\x04\x00\x00\x00\x0d",
		"\x02\x01\x70", "\x02\x01\x7d",
		"\x04\x00", "\x04\x0c\x00\x00\x00\x01\x00\x00\x00\x03\x7f\xff\xff\xff", "\x01\x04\x00\x00\x00\x05\x01\x05\x00\x00\x00\x05\x00",
	} {
		for call := range uint8(7) {
			f.Add([]byte{}, []byte(answer), call%2 == 0, call)
		}
		f.Add([]byte{}, []byte("\x00\x00\x00\x00"+answer), true, uint8(5))
	}
	// A server that leaves out the answer to one request and gives that to a later one.
	f.Add([]byte{}, []byte("\x00\x00!\x00\x03\x04@\x00\x00\x00"), false, uint8(0))
	f.Fuzz(func(t *testing.T, greetings, answers []byte, heartbeats bool, which uint8) {
		before := allocated()
		defer time.AfterFunc(time.Minute, showAllStacks).Stop() // outside the bubble: of real time
		bubble.Test(t, func(t *testing.T) {
			babble(t, &babbler{greetings: greetings, answers: answers, heartbeats: heartbeats}, int(which))
		})
		if asked := allocated() - before; asked > 256<<20 {
			t.Errorf("%d MiB of memory", asked>>20)
		}
	})
}

// showAllStacks ends a run that hangs, and shows where.
func showAllStacks() {
	debug.SetTraceback("all")
	panic("hangs for a minute of real time")
}

// allocated is all memory that was ever asked for.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// client is one of the babbler, in virtual time.
func (b *babbler) client(t *testing.T) *Client {
	t.Helper()
	began := time.Now()
	client, err := New(Config{
		Servers: []string{"babbler:1"}, SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Dial: b.dial, Clock: func() time.Duration { return time.Second + time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func babble(t *testing.T, server *babbler, which int) {
	t.Helper()
	client := server.client(t)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	session, err := client.Open(ctx, 0)
	if err != nil {
		return
	}
	defer session.Close(t.Context())
	calls := []func() error{
		func() error { _, err := session.Enqueue(ctx, "/d", "-lock-", nil); return err },
		func() error { _, _, err := session.Create(ctx, "/d/m", nil); return err },
		func() error { _, err := session.Children(ctx, "/d"); return err },
		func() error { _, _, err := session.Watch(ctx, "/d"); return err },
		func() error { _, err := client.Inspect(ctx, "/d"); return err },
		func() error {
			_, err := client.Commit(ctx, recipes.Create("/a", nil), recipes.Set("/a", nil, 0), recipes.Delete("/b", 1))
			return err
		},
		func() error { return client.MakeDirectory(ctx, "/d/e") },
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = calls[which%len(calls)]()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		session.lose(errClosed)
		<-done
	}
	if left := session.ValidFor(); left > session.Timeout() {
		t.Errorf("valid for %v with a timeout of %v", left, session.Timeout())
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// A bare is a session of ZooKeeper's wire protocol and nothing more: one goroutine writes requests and reads replies, as
// many at a time as it likes. It sends no pings, so that it lives as long as its timeout lets a silent one.
type bare struct {
	conn    net.Conn
	reader  *bufio.Reader
	xid     int32
	pending []byte
	fired   map[string]bool // paths whose watch has fired
}

const (
	eventXid     = -1
	noNode       = -101
	bareTimeout  = 40_000 // milliseconds; the most a tick of two seconds allows
	sequential   = 3      // ephemeral and sequential
	allPermitted = 31
)

// dialBare opens a session. The caller must close it.
func dialBare(ctx context.Context, address string) (*bare, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	b := &bare{conn: conn, reader: bufio.NewReader(conn), fired: map[string]bool{}}
	request := binary.BigEndian.AppendUint32(nil, 0)    // version of the protocol
	request = binary.BigEndian.AppendUint64(request, 0) // last zxid seen
	request = binary.BigEndian.AppendUint32(request, bareTimeout)
	request = binary.BigEndian.AppendUint64(request, 0)       // session
	request = appendString(request, string(make([]byte, 16))) // its password
	b.pending = appendString(b.pending, string(request))
	err = b.flush()
	if err == nil {
		_, err = b.frame()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return b, nil
}

func (b *bare) close() {
	b.request(link.CloseSession, nil)
	if b.flush() == nil {
		_, _, _ = b.reply()
	}
	b.conn.Close()
}

// request prepares a request, which is sent with the next flush.
func (b *bare) request(operation link.Opcode, body []byte) {
	b.xid++
	frame := binary.BigEndian.AppendUint32(nil, uint32(b.xid))
	frame = binary.BigEndian.AppendUint32(frame, uint32(operation))
	b.pending = appendString(b.pending, string(append(frame, body...)))
}

func (b *bare) flush() error {
	_, err := b.conn.Write(b.pending)
	b.pending = b.pending[:0]
	return err
}

// reply reads the next reply, with the error code that it carries, and notes the events in front of it.
func (b *bare) reply() (body []byte, code int32, err error) {
	for {
		frame, err := b.frame()
		if err != nil {
			return nil, 0, err
		}
		if !b.isEvent(frame) {
			return frame[16:], int32(binary.BigEndian.Uint32(frame[12:])), nil
		}
	}
}

// awaitFired returns when the watch on a path has fired. There must be no reply to come.
func (b *bare) awaitFired(path string) error {
	for !b.fired[path] {
		frame, err := b.frame()
		if err != nil {
			return err
		}
		if !b.isEvent(frame) {
			return fmt.Errorf("a reply in place of the event of %s", path)
		}
	}
	delete(b.fired, path)
	return nil
}

// isEvent takes a watch's event: its type, the session's state and the path.
func (b *bare) isEvent(frame []byte) bool {
	if int32(binary.BigEndian.Uint32(frame)) != eventXid {
		return false
	}
	path, _ := cutString(frame[16+8:])
	b.fired[path] = true
	return true
}

func (b *bare) frame() ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(b.reader, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(b.reader, frame)
	return frame, err
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// cutString takes a string off the front of a reply.
func cutString(b []byte) (s string, rest []byte) {
	length := binary.BigEndian.Uint32(b)
	return string(b[4 : 4+length]), b[4+length:]
}

// createBody is the request to create an ephemeral sequential node that is open to all.
func createBody(path string) []byte {
	body := appendString(nil, path)
	body = appendString(body, "") // data
	body = binary.BigEndian.AppendUint32(body, 1)
	body = binary.BigEndian.AppendUint32(body, allPermitted)
	body = appendString(appendString(body, "world"), "anyone")
	return binary.BigEndian.AppendUint32(body, sequential)
}

// readBody is the request to list or read a node, with a watch or without.
func readBody(path string, watch bool) []byte {
	body := append(appendString(nil, path), 0)
	if watch {
		body[len(body)-1] = 1
	}
	return body
}

func deleteBody(path string) []byte {
	anyVersion := int32(-1)
	return binary.BigEndian.AppendUint32(appendString(nil, path), uint32(anyVersion))
}

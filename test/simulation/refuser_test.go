package simulation_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
)

// Kinds of requests and codes of answers, as ZooKeeper numbers them.
const (
	kindCreate          = 1
	kindDelete          = 2
	kindExists          = 3
	kindList            = 12
	kindMulti           = 14
	kindPlace           = 15
	kindCreateContainer = 19

	codeNoAuth    = -102
	codeThrottled = -127
	codeLost      = 0 // no code: the request is carried out, and the connection breaks before the answer
)

// A refuser stands between clients and servers and refuses requests of some kinds, with a code, without the servers' doing.
type refuser struct {
	mu    sync.Mutex
	rules map[uint32]*refusal
}

type refusal struct {
	code    int32
	left    int // how many more are refused; -1 for all
	refused int
}

// refuse refuses so many requests of a kind from now on.
func (r *refuser) refuse(kind uint32, code int32, times int) *refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rules == nil {
		r.rules = map[uint32]*refusal{}
	}
	r.rules[kind] = &refusal{code: code, left: times}
	return r.rules[kind]
}

// count is how many were refused.
func (r *refuser) count(of *refusal) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return of.refused
}

func (r *refuser) judge(kind uint32) (code int32, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rule := r.rules[kind]
	if rule == nil || rule.left == 0 {
		return 0, false
	}
	rule.left--
	rule.refused++
	return rule.code, true
}

func (r *refuser) dialer(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &refused{Conn: conn, by: r, codes: map[uint32]int32{}}, nil
	}
}

// A refused is a connection whose server is asked for something else in place of what is refused. So answers keep their order.
type refused struct {
	net.Conn
	by      *refuser
	greeted bool

	mu    sync.Mutex
	codes map[uint32]int32 // of what was refused, by number

	input, ahead []byte
	welcomed     bool
}

// Write takes whole frames, one or several.
func (c *refused) Write(frames []byte) (int, error) {
	if !c.greeted {
		c.greeted = true
		return c.Conn.Write(frames)
	}
	for rest := frames; len(rest) > 0; {
		end := 4 + int(binary.BigEndian.Uint32(rest))
		if err := c.writeOne(rest[:end]); err != nil {
			return 0, err
		}
		rest = rest[end:]
	}
	return len(frames), nil
}

func (c *refused) writeOne(frame []byte) error {
	xid := binary.BigEndian.Uint32(frame[4:])
	code, is := c.by.judge(binary.BigEndian.Uint32(frame[8:]))
	if is {
		c.mu.Lock()
		c.codes[xid] = code
		c.mu.Unlock()
	}
	if is && code != codeLost {
		frame = standIn(xid, code)
	}
	_, err := c.Conn.Write(frame)
	return err
}

// standIn asks whether there is a root, or, for a verdict that takes a transaction, for the deletion of what is not there.
func standIn(xid uint32, code int32) []byte {
	if code != codeNoAuth {
		return append(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 14}, xid), 0, 0, 0, kindExists, 0, 0, 0, 1, '/', 0)
	}
	frame := append(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 18}, xid), 0, 0, 0, kindDelete, 0, 0, 0, 2, '/', '?')
	return binary.BigEndian.AppendUint32(frame, 0)
}

func (c *refused) Read(buffer []byte) (int, error) {
	for len(c.ahead) == 0 {
		part := make([]byte, 4096)
		n, err := c.Conn.Read(part)
		if err != nil {
			return 0, err
		}
		c.input = append(c.input, part[:n]...)
		c.pass()
	}
	n := copy(buffer, c.ahead)
	c.ahead = c.ahead[n:]
	return n, nil
}

// pass passes on whole answers, as they are or as refusals.
func (c *refused) pass() {
	for len(c.input) >= 4 {
		end := 4 + int(binary.BigEndian.Uint32(c.input))
		if len(c.input) < end {
			return
		}
		answer := bytes.Clone(c.input[:end])
		c.input = c.input[end:]
		if c.welcomed {
			answer = c.edit(answer)
		}
		c.welcomed = true
		c.ahead = append(c.ahead, answer...)
	}
}

func (c *refused) edit(answer []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	code, is := c.codes[binary.BigEndian.Uint32(answer[4:])]
	if !is {
		return answer
	}
	if code == codeLost {
		_ = c.Close()
		return nil
	}
	answer = binary.BigEndian.AppendUint32(answer[:16], uint32(code))
	binary.BigEndian.PutUint32(answer, 16)
	return answer
}

package embedded

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
)

// handle does one request and queues the reply. It says whether more may follow.
func (c *connection) handle(frame []byte) bool {
	in := newDecoder(frame)
	xid, op := in.Int32(), opcode(in.Int32())
	e := c.server.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(c.pending) > enoughPending && !c.closing {
		c.drained.Wait()
	}
	if in.Failed() || c.closing || e.closed {
		return false
	}
	c.received++
	c.server.received++
	e.touch(c.session)
	return c.dispatch(xid, op, in)
}

func (c *connection) dispatch(xid int32, op opcode, in *decoder) bool {
	switch op {
	case opPing:
		c.reply(xidPing, "PING", codeOK, nil)
		return true
	case opAuth:
		return c.authenticate(xid, in)
	case opCloseSession:
		c.server.ensemble.endSession(c.session, causeClosed)
		c.reply(xid, "CLOS", codeOK, nil)
		return false
	}
	operation, known := served[op]
	if !known {
		c.replyAt(xid, -1, codeUnimplemented, nil)
		return false
	}
	out := &encoder{}
	err := operation.handle(c, in, out)
	if err != nil && !errors.Is(err, errWithReply) {
		out.buffer = nil
	}
	c.reply(xid, operation.name, codeOf(err), out.buffer)
	return true
}

func (c *connection) reply(xid int32, name string, code Code, body []byte) {
	c.lastOperation, c.lastXid, c.lastZxid = name, xid, c.server.ensemble.zxid
	c.replyAt(xid, c.lastZxid, code, body)
}

func (c *connection) replyAt(xid int32, zxid int64, code Code, body []byte) {
	out := newFrame()
	out.header(xid, zxid, code)
	out.buffer = append(out.buffer, body...)
	c.queue(out.seal())
}

// authenticate adds who the client proves to be. A client that fails is disconnected.
func (c *connection) authenticate(xid int32, in *decoder) bool {
	_, scheme, secret := in.Int32(), in.Text(), in.bytes()
	if in.Failed() {
		return false
	}
	identity, ok := prove(scheme, string(secret), c.address())
	if !ok {
		c.replyAt(xid, 0, codeAuthFailed, nil)
		return false
	}
	if !slices.Contains(c.identities, identity) {
		c.identities = append(slices.Clone(c.identities), identity)
	}
	c.replyAt(xid, 0, codeOK, nil)
	return true
}

// prove turns what a client sends into who it is.
func prove(scheme, secret, address string) (Identity, bool) {
	switch scheme {
	case "digest":
		return Identity{Scheme: scheme, ID: digest(secret)}, true
	case "ip":
		return Identity{Scheme: scheme, ID: address}, true
	}
	return Identity{}, false
}

// digest is what stands in an access control list for "user:password".
func digest(secret string) string {
	user, _, _ := strings.Cut(secret, ":")
	sum := sha1.Sum([]byte(secret))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

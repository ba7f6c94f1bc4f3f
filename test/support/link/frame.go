package link

import (
	"bytes"
	"encoding/binary"
)

// A Frame is one request of ZooKeeper's client protocol, as a match function is shown it.
type Frame struct {
	// Xid is the number by which the client knows the reply. It is 0 for the first request of a connection, which opens or
	// resumes a session, -2 for pings, -4 for credentials and -8 for watches set again.
	Xid int32
	// Opcode is what is asked for.
	Opcode Opcode
	// Body is the request without its length and header. It must not be changed, nor kept.
	Body []byte
}

// Path is the path the request is about, for a multi that of its first operation; empty if there is none.
func (f Frame) Path() string {
	body := f.Body
	switch f.Opcode {
	case CreateSession, Ping, CloseSession, Auth, SetWatches, SetWatches2, Reconfig, SASL, WhoAmI:
		return ""
	case Multi, MultiRead:
		body = body[min(multiHeader, len(body)):]
	}
	if len(body) < 4 {
		return ""
	}
	length := int64(binary.BigEndian.Uint32(body))
	if length > int64(len(body)-4) {
		return ""
	}
	return string(body[4 : 4+length])
}

const (
	lengthPrefix  = 4
	requestHeader = 8 // xid, opcode
	replyHeader   = 4 // xid; what follows of the header is of no interest here
	multiHeader   = 9 // opcode, last?, error
	largestFrame  = 64 << 20
)

// A reader makes parcels of what one side of a connection sends: whole frames, if it is to read them.
type reader struct {
	pump    *pump
	started bool
	opened  bool   // the first frame, which has no header, has been seen
	pending []byte // a frame that is not whole yet
}

func newReader(p *pump) *reader { return &reader{pump: p} }

// parcels takes in bytes, which it does not keep.
func (r *reader) parcels(data []byte) []parcel {
	if len(data) == 0 {
		return nil
	}
	data = r.rewritten(bytes.Clone(data))
	if r.unread() {
		return append([]parcel{r.rest()}, parcel{data: data})
	}
	if r.pump.connection.link.options.HTTP2 {
		return r.http2Parcels(data)
	}
	r.pending = append(r.pending, data...)
	var parcels []parcel
	for !r.unread() {
		frame, ok := r.next()
		if !ok {
			return parcels
		}
		parcels = append(parcels, r.parcel(frame))
	}
	return append(parcels, r.rest())
}

// http2Parcels are the whole frames that a server has sent, and whatever its client has.
func (r *reader) http2Parcels(data []byte) []parcel {
	if r.pump.direction == ToServer {
		return []parcel{{data: data}}
	}
	r.pending = append(r.pending, data...)
	whole := 0
	for whole+http2Length(r.pending[whole:]) <= len(r.pending) {
		whole += http2Length(r.pending[whole:])
	}
	frames := r.pending[:whole:whole]
	r.pending = r.pending[whole:]
	return []parcel{{data: frames}}
}

// rest is what is left of a frame that was never whole.
func (r *reader) rest() parcel {
	rest := r.pending
	r.pending = nil
	return parcel{data: rest}
}

// rewritten is what is forwarded for the bytes just read.
func (r *reader) rewritten(data []byte) []byte {
	rewrite := r.pump.connection.link.options.Rewrite
	if rewrite == nil || r.started || r.pump.direction == ToClient {
		return data
	}
	r.started = true
	return rewrite(data)
}

// next removes a whole frame from what is pending. If what is pending cannot be a frame, the connection is left unread
// from here on.
func (r *reader) next() (frame []byte, ok bool) {
	if len(r.pending) < lengthPrefix {
		return nil, false
	}
	length := int64(binary.BigEndian.Uint32(r.pending))
	if length > largestFrame || length < r.shortest() {
		r.leaveUnread()
		return nil, true
	}
	end := int(lengthPrefix + length)
	if len(r.pending) < end {
		return nil, false
	}
	frame, r.pending = r.pending[:end:end], r.pending[end:]
	return frame, true
}

// shortest is the length of the shortest frame.
func (r *reader) shortest() int64 {
	if r.pump.direction == ToServer {
		return requestHeader
	}
	return replyHeader
}

// parcel looks at a frame: a request will meet the traps when it is forwarded, a reply's request has met them.
func (r *reader) parcel(frame []byte) parcel {
	if frame == nil {
		return parcel{}
	}
	first := !r.opened
	r.opened = true
	body := frame[lengthPrefix:]
	if r.pump.direction == ToServer {
		return parcel{data: frame, frame: requestOf(body, first)}
	}
	return parcel{data: frame, trap: r.pump.connection.answer(int32(binary.BigEndian.Uint32(body)), first)}
}

func requestOf(body []byte, first bool) *Frame {
	if first {
		return &Frame{Opcode: CreateSession, Body: body}
	}
	return &Frame{
		Xid:    int32(binary.BigEndian.Uint32(body)),
		Opcode: Opcode(binary.BigEndian.Uint32(body[4:])),
		Body:   body[requestHeader:],
	}
}

func (r *reader) unread() bool {
	r.pump.connection.link.mutex.Lock()
	defer r.pump.connection.link.mutex.Unlock()
	return r.pump.connection.unread
}

func (r *reader) leaveUnread() {
	r.pump.connection.link.mutex.Lock()
	defer r.pump.connection.link.mutex.Unlock()
	r.pump.connection.unread = true
}

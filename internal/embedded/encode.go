package embedded

import "encoding/binary"

// An encoder writes jute.
type encoder struct{ buffer []byte }

func (e *encoder) int32(n int32) { e.buffer = binary.BigEndian.AppendUint32(e.buffer, uint32(n)) }

func (e *encoder) int64(n int64) { e.buffer = binary.BigEndian.AppendUint64(e.buffer, uint64(n)) }

func (e *encoder) bool(b bool) {
	if b {
		e.buffer = append(e.buffer, 1)
	} else {
		e.buffer = append(e.buffer, 0)
	}
}

// bytes writes nil as the length −1.
func (e *encoder) bytes(b []byte) {
	if b == nil {
		e.int32(-1)
		return
	}
	e.int32(int32(len(b)))
	e.buffer = append(e.buffer, b...)
}

func (e *encoder) string(s string) {
	e.int32(int32(len(s)))
	e.buffer = append(e.buffer, s...)
}

func (e *encoder) strings(list []string) {
	e.int32(int32(len(list)))
	for _, s := range list {
		e.string(s)
	}
}

func (e *encoder) acl(list []ACL) {
	e.int32(int32(len(list)))
	for _, entry := range list {
		e.int32(entry.Permissions)
		e.string(entry.Identity.Scheme)
		e.string(entry.Identity.ID)
	}
}

func (e *encoder) stat(s Stat) {
	e.int64(s.Czxid)
	e.int64(s.Mzxid)
	e.int64(s.Ctime)
	e.int64(s.Mtime)
	e.int32(s.Version)
	e.int32(s.Cversion)
	e.int32(s.Aversion)
	e.int64(s.Owner)
	e.int32(s.DataLength)
	e.int32(s.ChildCount)
	e.int64(s.Pzxid)
}

// newFrame begins a frame; seal completes it.
func newFrame() *encoder { return &encoder{buffer: make([]byte, 4, 64)} }

// seal writes the frame's length into its head.
func (e *encoder) seal() []byte {
	binary.BigEndian.PutUint32(e.buffer, uint32(len(e.buffer)-4))
	return e.buffer
}

// header begins a reply or an event.
func (e *encoder) header(xid int32, zxid int64, code Code) {
	e.int32(xid)
	e.int64(zxid)
	e.int32(int32(code))
}

package embedded

import "encoding/binary"

// A decoder reads jute, ZooKeeper's encoding: big-endian integers, and bytes, strings and lists with their length in
// front. The first mistake makes it fail for good.
type decoder struct {
	rest   []byte
	failed bool
}

// err is nil as long as everything could be read.
func (d *decoder) err() error {
	if d.failed {
		return codeMarshalling
	}
	return nil
}

// take gives the next n bytes, or nil.
func (d *decoder) take(n int) []byte {
	if d.failed || n < 0 || n > len(d.rest) {
		d.failed = true
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return len(b) == 1 && b[0] != 0
}

// bytes gives a copy; nil for the length −1.
func (d *decoder) bytes() []byte {
	n := d.int32()
	if n == -1 || d.failed {
		return nil
	}
	return append([]byte{}, d.take(int(n))...)
}

// string wants a string to be there.
func (d *decoder) string() string { return string(d.take(int(d.int32()))) }

// optional takes the length −1 for an empty string.
func (d *decoder) optional() string {
	n := d.int32()
	if n == -1 {
		return ""
	}
	return string(d.take(int(n)))
}

// missing is what path gives for the length −1. No path of a client is like it.
const missing = "\x00no path\x00"

// path takes the length −1 for a path of its own: a request without a path is found out only while it is done.
func (d *decoder) path() string {
	n := d.int32()
	if n == -1 {
		return missing
	}
	return string(d.take(int(n)))
}

// list gives the length of a list; a negative one counts as empty. Each element has at least four bytes, so that a length which
// cannot be true is not believed.
func (d *decoder) list() int {
	n := int(d.int32())
	if n < 0 {
		return 0
	}
	if n > len(d.rest)/4 {
		d.failed = true
		return 0
	}
	return n
}

func (d *decoder) strings() []string {
	list := make([]string, 0, d.list())
	for range cap(list) {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) acl() []ACL {
	var list []ACL
	for range d.list() {
		list = append(list, ACL{Permissions: d.int32(), Identity: Identity{Scheme: d.optional(), ID: d.string()}})
	}
	return list
}

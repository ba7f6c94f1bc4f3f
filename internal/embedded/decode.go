package embedded

import "github.com/sidekeeper/sidekeeper/internal/jute"

// A decoder reads a request. A copy of it reads the rest once more.
type decoder struct{ jute.Decoder }

func newDecoder(frame []byte) *decoder { return &decoder{*jute.NewDecoder(frame)} }

// err is nil as long as everything could be read.
func (d *decoder) err() error {
	if d.Failed() {
		return codeMarshalling
	}
	return nil
}

// bytes gives a copy; nil for the length −1.
func (d *decoder) bytes() []byte {
	if b := d.Bytes(); b != nil {
		return append([]byte{}, b...)
	}
	return nil
}

// missing is what path gives for the length −1. No path of a client is like it.
const missing = "\x00no path\x00"

// path takes the length −1 for a path of its own: a request without a path is found out only while it is done.
func (d *decoder) path() string {
	if b := d.Bytes(); b != nil || d.Failed() {
		return string(b)
	}
	return missing
}

func (d *decoder) acl() []ACL {
	var list []ACL
	for range d.Length(4) {
		list = append(list, ACL{Permissions: d.Int32(), Identity: Identity{Scheme: d.Optional(), ID: d.Text()}})
	}
	return list
}

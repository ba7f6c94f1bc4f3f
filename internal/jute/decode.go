// Package jute reads ZooKeeper's encoding: big-endian integers, and bytes, strings and lists with their length in front.
package jute

import "encoding/binary"

// A Decoder reads one record. The first mistake makes it fail for good: it gives zero values from then on, and Failed says
// so.
type Decoder struct {
	rest   []byte
	failed bool
}

// NewDecoder reads a record, which it keeps.
func NewDecoder(record []byte) *Decoder { return &Decoder{rest: record} }

// Failed says whether something could not be read.
func (d *Decoder) Failed() bool { return d.failed }

// Left is how many bytes have not been read.
func (d *Decoder) Left() int { return len(d.rest) }

// take gives the next n bytes, or nil.
func (d *Decoder) take(n int) []byte {
	if d.failed || n < 0 || n > len(d.rest) {
		d.failed = true
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

// Int32 reads four bytes.
func (d *Decoder) Int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Int64 reads eight bytes.
func (d *Decoder) Int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bool reads one byte.
func (d *Decoder) Bool() bool {
	b := d.take(1)
	return len(b) == 1 && b[0] != 0
}

// Bytes gives a part of the record; nil for the length −1.
func (d *Decoder) Bytes() []byte {
	n := d.Int32()
	if n == -1 || d.failed {
		return nil
	}
	return d.take(int(n))
}

// Text reads a string, which must be there.
func (d *Decoder) Text() string { return string(d.take(int(d.Int32()))) }

// Optional reads a string; it is empty for the length −1.
func (d *Decoder) Optional() string { return string(d.Bytes()) }

// Length reads the length of a list; a negative one counts as empty. One that cannot be true, since each element takes at
// least as many bytes as given, is not believed.
func (d *Decoder) Length(least int) int {
	n := int(d.Int32())
	if n < 0 {
		return 0
	}
	if n > len(d.rest)/least {
		d.failed = true
		return 0
	}
	return n
}

// Texts reads a list of strings.
func (d *Decoder) Texts() []string {
	list := make([]string, 0, d.Length(4))
	for range cap(list) {
		list = append(list, d.Text())
	}
	return list
}

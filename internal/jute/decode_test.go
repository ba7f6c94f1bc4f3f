package jute

import (
	"slices"
	"testing"
)

func TestADecoderReadsWhatIsThere(t *testing.T) {
	d := NewDecoder([]byte{
		0, 0, 0, 7,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
		1,
		0, 0, 0, 2, 'h', 'i',
		0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff,
		0, 0, 0, 2, 0, 0, 0, 1, 'a', 0, 0, 0, 0,
		9,
	})
	if got := d.Int32(); got != 7 {
		t.Error(got)
	}
	if got := d.Int64(); got != -2 {
		t.Error(got)
	}
	if !d.Bool() {
		t.Error("false")
	}
	if got := d.Text(); got != "hi" {
		t.Error(got)
	}
	if got := d.Bytes(); got != nil {
		t.Error(got)
	}
	if got := d.Optional(); got != "" {
		t.Error(got)
	}
	if got := d.Texts(); !slices.Equal(got, []string{"a", ""}) {
		t.Error(got)
	}
	if d.Failed() || d.Left() != 1 {
		t.Error(d.Failed(), d.Left())
	}
}

func TestAStringThatMustBeThereIsNotMissing(t *testing.T) {
	d := NewDecoder([]byte{0xff, 0xff, 0xff, 0xff})
	if d.Text() != "" || !d.Failed() {
		t.Error("it is")
	}
}

func TestADecoderFailsForGoodAtTheFirstMistake(t *testing.T) {
	for name, read := range map[string]func(*Decoder){
		"an integer that is cut":             func(d *Decoder) { d.Int64() },
		"a length beyond the end":            func(d *Decoder) { d.Bytes() },
		"a list longer than what is left":    func(d *Decoder) { d.Length(1) },
		"a string with a negative length":    func(d *Decoder) { d.Bool(); d.Text() },
		"a list whose elements cannot exist": func(d *Decoder) { d.Bool(); d.Bool(); d.Length(1 << 20) },
	} {
		d := NewDecoder([]byte{0, 0x80, 0, 0, 1, 0})
		read(d)
		if !d.Failed() {
			t.Errorf("%s is read", name)
		}
		if d.Int32() != 0 || d.Int64() != 0 || d.Bool() || d.Bytes() != nil || len(d.Texts()) != 0 {
			t.Errorf("after %s something is read", name)
		}
	}
}

package recipes

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// foreignData is what others write into nodes, or might.
var foreignData = []string{
	"", "{}", "null", "unlock", "__REVOKE__", "10.0.0.7", "\xff\xfe", `{"sidekeeper":1}`, `{"sidekeeper":2,"later":[]}`, `{"sidekeeper":-1}`,
	`{"sidekeeper":1,"owner":"a","metadata":{"k":"v"},"revoke":{"by":"b","reason":"c","grace_ms":5000,"break":true}}`,
	`{"sidekeeper":1,"revoke":{"grace_ms":-1}}`, `{"sidekeeper":1,"revoke":{"grace_ms":9223372036854775807}}`,
	`{"sidekeeper":1,"end":{"replaced":true,"by":"b","reason":"r"}}`, `{"sidekeeper":1,"end":null,"owner":"\ud800"}`,
	`{"sidekeeper":1e400}`, `{"SIDEKEEPER":1,"Owner":"x"}`, `[{"sidekeeper":1}]`, `{"sidekeeper":1}{"sidekeeper":1}`,
	"\x00\x00\x00\x00\x00\x00\x00\x07", "\x7f\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("[", 10001),
	strings.Repeat("x", 127) + "ä", `{"sidekeeper":1,"owner":"` + strings.Repeat("x", 60000) + `"}`,
	`{"sidekeeper":1,"owner":"` + strings.Repeat("\xff", 9000) + `"}`,
}

// Whatever stands in a contender's node: what is shown of it is short text, and a mark is understood, keeps what stood there,
// and never makes what was asked for later or less.
func FuzzDataOfContenders(f *testing.F) {
	for i, data := range foreignData {
		f.Add([]byte(data), int64(i-3)*700, i%2 == 0, "operator", "because")
	}
	f.Fuzz(func(t *testing.T, data []byte, milliseconds int64, breaking bool, by, reason string) {
		about, foreign := aboutIn(data)
		shownWell(t, about.Owner, about.Metadata)
		if foreign && len(about.Owner) > maxForeignOwner {
			t.Errorf("%d bytes of a foreign owner", len(about.Owner))
		}
		asked := Revocation{Asked: true, By: by, Reason: reason, Break: breaking}
		if milliseconds >= 0 {
			asked.Grace = new(time.Duration(milliseconds%maxGrace.Milliseconds()) * time.Millisecond)
		}
		before, marked := revocationIn(data), asked.mark(data)
		after := revocationIn(marked)
		if !after.Asked || before.Break && !after.Break || before.Grace != nil && (after.Grace == nil || *after.Grace > *before.Grace) {
			t.Errorf("%q asks for %+v, and marked with %+v for %+v", data, before, asked, after)
		}
		if kept, still := aboutIn(marked); !foreign && (still || kept.Owner != about.Owner || !maps.Equal(kept.Metadata, about.Metadata)) {
			t.Errorf("%q said %+v, and marked %+v", data, about, kept)
		}
		if !foreign && asked.Grace != nil && *after.Grace > *asked.Grace {
			t.Errorf("asked for %v, marked with %v", asked.Grace, after.Grace)
		}
		if !foreign && asked.Break && !after.Break {
			t.Errorf("%q is not broken by %q", data, marked)
		}
	})
}

// shownWell fails the test unless all of it is text of a bounded length.
func shownWell(t *testing.T, owner string, metadata map[string]string) {
	t.Helper()
	size := len(owner)
	valid := utf8.ValidString(owner)
	for key, value := range metadata {
		size += len(key) + len(value)
		valid = valid && utf8.ValidString(key) && utf8.ValidString(value)
	}
	if !valid || size > 3*maxMemberData {
		t.Errorf("shown are %d bytes, %q and %q", size, owner, metadata)
	}
}

// Whatever stands in a member's node, what is shown of it is short text, and only our own form asks for the member's end.
func FuzzDataOfMembers(f *testing.F) {
	for _, data := range foreignData {
		f.Add([]byte(data), "m")
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		shown := memberIn(name, Node{Data: data})
		shownWell(t, shown.Owner, shown.Metadata)
		if !utf8.ValidString(shown.Text) || len(shown.Text) > maxForeignText {
			t.Errorf("shown are %d bytes of text: %q", len(shown.Text), shown.Text)
		}
		if !shown.Foreign && shown.Text != "" || shown.Foreign && (shown.Owner != "" || len(shown.Metadata) > 0) {
			t.Errorf("%q is shown as %+v", data, shown)
		}
		standing := memberStateIn(data)
		if len(standing.By) > maxEndText || len(standing.Reason) > maxEndText || (shown.Foreign && standing.End != nil) {
			t.Errorf("%q stands as %+v", data, standing)
		}
		written := About{Owner: shown.Owner, Metadata: shown.Metadata}.encode()
		if again := memberIn(name, Node{Data: written}); !shown.Foreign && len(written) <= maxMemberData && !again.SaysTheSame(shown) {
			t.Errorf("%q is shown as %+v, and written again as %+v", data, shown, again)
		}
	})
}

// What somebody else's counter holds is a number that is written back as it was, or none.
func FuzzNumbers(f *testing.F) {
	for _, data := range foreignData {
		f.Add([]byte(data), int64(len(data)))
	}
	f.Fuzz(func(t *testing.T, data []byte, number int64) {
		if read, err := decodeNumber(encodeNumber(number)); read != number || err != nil {
			t.Errorf("%d is read as %d, %v", number, read, err)
		}
		read, err := decodeNumber(data)
		switch {
		case err == nil && len(data) == 0 && read == 0:
		case err == nil && !slices.Equal(encodeNumber(read), data):
			t.Errorf("%x is read as %d", data, read)
		case err != nil && (len(data) == 8 || !errors.Is(err, ErrMalformed)):
			t.Errorf("%x: %v", data, err)
		}
	})
}

// The order of keys is one in which they can be sorted, and in which what lies below a key follows it at once.
func FuzzOrderOfKeys(f *testing.F) {
	f.Add("a", "a/b", "a-b")
	f.Add("a/b/c", "a/b", "a.b/c")
	f.Add("", "/", "//")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		sign := func(n int) int { return min(1, max(-1, n)) }
		if sign(CompareKeys(a, b)) != -sign(CompareKeys(b, a)) || (CompareKeys(a, b) == 0) != (a == b) {
			t.Errorf("%q and %q: %d, %d", a, b, CompareKeys(a, b), CompareKeys(b, a))
		}
		if CompareKeys(a, b) <= 0 && CompareKeys(b, c) <= 0 && CompareKeys(a, c) > 0 {
			t.Errorf("%q, %q and %q go round", a, b, c)
		}
		bySegments := slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
		if sign(bySegments) != sign(CompareKeys(a, b)) {
			t.Errorf("%q and %q: %d, by segments %d", a, b, CompareKeys(a, b), bySegments)
		}
		if liesBelow(c, a) && !liesBelow(b, a) && a != "" && CompareKeys(a, b) < 0 && CompareKeys(b, c) < 0 {
			t.Errorf("%q stands between %q and what lies below it, %q", b, a, c)
		}
	})
}

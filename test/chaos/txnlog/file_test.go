package txnlog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// told is what a transaction has changed, in words.
func told(t Transaction) string {
	var words []string
	for _, c := range t.Changes {
		word := c.Kind.String()
		if c.Path != "" {
			word += " " + c.Path
		}
		if c.Data != nil {
			word += fmt.Sprintf("=%s", c.Data)
		}
		if c.Kind == Set {
			word += fmt.Sprintf("@%d", c.Version)
		}
		if c.Owned {
			word += " owned"
		}
		if c.Timeout != 0 {
			word += fmt.Sprint(" ", c.Timeout.Milliseconds())
		}
		if c.Paths != nil {
			word += fmt.Sprintf(" with [%s]", strings.Join(c.Paths, ", "))
		}
		words = append(words, word)
	}
	if t.Failed != 0 {
		words = append(words, fmt.Sprintf("failed %d", t.Failed))
	}
	return strings.Join(words, ", ")
}

func TestEveryTypeOfTransactionIsRead(t *testing.T) {
	part := func(r record, kind link.Opcode, body record) record { return r.int32(int32(kind)).bytes(body) }
	digest := record{}.int32(2).int64(-77)
	acl := record{}.openACL()
	for _, c := range []struct {
		kind link.Opcode
		body record
		want string
	}{
		{link.CreateSession, record{}.int32(4000), "begin session 4000"},
		{link.CloseSession, record{}.strings("/a", "/b"), "end session with [/a, /b]"},
		{link.CloseSession, record{}.strings(), "end session with []"},
		{link.Create, created("/a", "x", true), "create /a=x owned"},
		{link.Create2, created("/a", "", false), "create /a="},
		{link.CreateContainer, append(record{}.string("/c").int32(-1), acl.int32(1)...), "create /c"},
		{link.CreateTTL, append(record{}.string("/t").string("x"), acl.int32(1).int64(9000)...), "create /t=x"},
		{link.Delete, record{}.string("/a"), "delete /a"},
		{deleteContainer, record{}.string("/c"), "delete /c"},
		{link.SetData, written("/a", "y", 7), "set /a=y@7"},
		{link.SetACL, append(record{}.string("/a"), acl.int32(1)...), "other /a"},
		{link.Reconfig, written("/zookeeper/config", "y", 7), "other /zookeeper/config"},
		{failure, record{}.int32(-101), "failed -101"},
		{
			link.Multi,
			part(part(part(record{}.int32(3), link.Create, created("/a", "x", true)), link.Check, record{}.string("/b").int32(1)),
				link.SetData, written("/b", "z", 2)),
			"create /a=x owned, other /b, set /b=z@2",
		},
		{
			link.Multi,
			part(part(part(record{}.int32(3), link.Delete, record{}.string("/a")), failure, record{}.int32(-103)),
				failure, record{}.int32(-2)),
			"failed -103",
		},
		{
			link.Multi,
			part(part(part(record{}.int32(3), failure, record{}.string("/a")), failure, record{}.int32(-103)),
				failure, record{}.int32(-2)),
			"failed -103",
		},
	} {
		for _, tail := range []record{nil, digest} {
			whole := append(transaction(7, 3, 0x100000001, c.kind, c.body), tail...)
			read, err := parse(logOf(whole))
			if err != nil || len(read) != 1 {
				t.Errorf("%s: %v, %v", c.kind, read, err)
				continue
			}
			if got := told(read[0]); got != c.want {
				t.Errorf("%s is %q, not %q", c.kind, got, c.want)
			}
			if read[0].Session != 7 || read[0].Cxid != 3 || read[0].Zxid != 0x100000001 || !read[0].Time.Equal(beginning.Add(1e9)) {
				t.Errorf("%s: %+v", c.kind, read[0])
			}
		}
	}
}

func TestAMultiThatFailedIsTheSameHoweverItsPartsWereWritten(t *testing.T) {
	part := func(r record, kind link.Opcode, body record) record { return r.int32(int32(kind)).bytes(body) }
	var read []Transaction
	for _, first := range []link.Opcode{link.Delete, failure} {
		body := part(part(record{}.int32(2), first, record{}.string("/a")), failure, record{}.int32(-103))
		one, err := readTransaction(transaction(7, 3, 1, link.Multi, body))
		must(t, err)
		read = append(read, one)
	}
	if l := merge(0, [][]Transaction{read[:1], read[1:], read[:1]}); len(l.Faults) > 0 {
		t.Error(l.Faults)
	}
}

// threeEntries is a file, and where each entry ends in it.
func threeEntries() (file []byte, ends []int) {
	var all []record
	for zxid := range int64(3) {
		all = append(all, transaction(1, 1, zxid+1, link.Create, created(fmt.Sprint("/n", zxid), "data", false)))
		ends = append(ends, len(logOf(all...)))
	}
	return logOf(all...), ends
}

func TestAFileThatIsBeingWrittenIsReadAsFarAsItGoes(t *testing.T) {
	whole, ends := threeEntries()
	padding := make([]byte, 1000)
	for cut := range len(whole) + 1 {
		want := 0
		for _, end := range ends {
			if end <= cut {
				want++
			}
		}
		for name, file := range map[string][]byte{"cut": whole[:cut], "cut and padded": append(bytes.Clone(whole[:cut]), padding...)} {
			read, err := parse(file)
			if cut < headerLength && errors.Is(err, ErrCorrupt) && name == "cut and padded" && cut < 8 {
				continue // a header is written at once
			}
			if err != nil || len(read) != want {
				t.Fatalf("%s after %d bytes: %d entries, %v; not %d", name, cut, len(read), err, want)
			}
		}
	}
}

func TestDamageWithEntriesBehindItIsTold(t *testing.T) {
	whole, ends := threeEntries()
	for at := headerLength; at < ends[1]; at++ {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x40
		read, err := parse(damaged)
		inLength := at < ends[0] && at-headerLength >= 8 && at-headerLength < 12 || at >= ends[0] && at-ends[0] >= 8 && at-ends[0] < 12
		if inLength {
			continue // looks like an entry that was never finished
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("damaged at %d: %d entries, %v", at, len(read), err)
		}
	}
}

func TestWhatIsNoLogIsRefused(t *testing.T) {
	for name, file := range map[string][]byte{
		"another magic":   append([]byte("ZKSN"), make([]byte, 12)...),
		"another version": append([]byte("ZKLG\x00\x00\x00\x03"), make([]byte, 8)...),
		"another type":    logOf(transaction(1, 1, 1, 99, nil)),
		"a short entry":   logOf(record("short")),
		"a short body":    logOf(transaction(1, 1, 1, link.SetData, record{}.string("/a"))),
		"a multi of what is not known": logOf(transaction(1, 1, 1, link.Multi,
			record{}.int32(1).int32(99).bytes(nil))),
		"a multi with a short part": logOf(transaction(1, 1, 1, link.Multi,
			record{}.int32(1).int32(int32(link.Delete)).bytes([]byte{0, 0}))),
		"a multi longer than itself": logOf(transaction(1, 1, 1, link.Multi, record{}.int32(1<<30))),
	} {
		if read, err := parse(file); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, %v", name, read, err)
		}
	}
}

func TestOnlyFilesThatCanHoldWhatIsAskedForAreRead(t *testing.T) {
	entry := func(zxid int64) record { return transaction(1, 1, zxid, link.Delete, record{}.string("/a")) }
	directory := serverOf(t, map[int64][]byte{
		1:   []byte("not a log at all, so that it would be told"),
		10:  logOf(entry(10), entry(11)),
		12:  logOf(entry(12), entry(13)),
		300: nil,
	})
	for since, want := range map[int64]string{10: " b c d", 11: " c d", 12: " d", 13: ""} {
		read, err := readServer(since, directory)
		must(t, err)
		if different := cmp.Diff(want, zxids(read)); different != "" {
			t.Errorf("since %d: %s", since, different)
		}
	}
	if _, err := readServer(9, directory); !errors.Is(err, ErrCorrupt) {
		t.Errorf("since 9: %v", err)
	}
	if _, err := Read(0, t.TempDir()); err == nil {
		t.Error("a directory without logs is read")
	}
}

func FuzzAnyFileIsReadOrRefused(f *testing.F) {
	whole, ends := threeEntries()
	f.Add(whole)
	f.Add(whole[:ends[1]+5])
	f.Add(append(bytes.Clone(whole), make([]byte, 64)...))
	f.Add(logOf(transaction(1, 0, 1, link.CloseSession, record{}.strings("/a"))))
	f.Add(logOf(transaction(1, 1, 1, link.Multi, record{}.int32(1).int32(2).bytes(record{}.string("/a")))))
	f.Fuzz(func(t *testing.T, file []byte) {
		transactions, err := parse(file)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v is no error of this package", err)
		}
		merge(0, [][]Transaction{transactions}).Lives()
		if entries := bytes.Count(file, []byte("B")); len(transactions) > entries {
			t.Errorf("%d transactions in a file with %d ends", len(transactions), entries)
		}
		again, _ := parse(append(bytes.Clone(file), make([]byte, 40)...))
		if len(again) < len(transactions) {
			t.Errorf("with padding, %d transactions instead of %d", len(again), len(transactions))
		}
	})
}

// The checksum keeps mutations out of the decoders behind it: this target has none.
func FuzzAnyEntryIsReadOrRefused(f *testing.F) {
	for _, seed := range []record{
		transaction(1, 1, 1, link.Create, created("/a", "x", true)),
		transaction(1, 1, 1, link.CreateTTL, created("/a", "x", true)),
		transaction(1, 1, 1, link.SetData, written("/a", "x", 1)),
		transaction(1, 0, 1, link.CloseSession, record{}.strings("/a")),
		transaction(1, 1, 1, failure, record{}.int32(-101)),
		transaction(1, 1, 1, link.Multi, record{}.int32(1).int32(2).bytes(record{}.string("/a"))),
		transaction(1, 1, 1, link.SetACL, append(record{}.string("/a"), record{}.openACL().int32(1)...)),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		read, err := readTransaction(entry)
		if err != nil {
			return
		}
		if read.Failed != 0 && len(read.Changes) > 0 {
			t.Errorf("%s failed and changes something", read)
		}
		merge(0, [][]Transaction{{read}}).Lives()
	})
}

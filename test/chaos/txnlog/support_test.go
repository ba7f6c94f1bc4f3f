package txnlog

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A record is what one writes in ZooKeeper's encoding.
type record []byte

func (r record) int32(n int32) record { return binary.BigEndian.AppendUint32(r, uint32(n)) }

func (r record) int64(n int64) record { return binary.BigEndian.AppendUint64(r, uint64(n)) }

func (r record) bytes(b []byte) record { return append(r.int32(int32(len(b))), b...) }

func (r record) string(s string) record { return r.bytes([]byte(s)) }

func (r record) bool(b bool) record {
	if b {
		return append(r, 1)
	}
	return append(r, 0)
}

func (r record) strings(list ...string) record {
	r = r.int32(int32(len(list)))
	for _, s := range list {
		r = r.string(s)
	}
	return r
}

func (r record) openACL() record { return r.int32(1).int32(31).string("world").string("anyone") }

// beginning is when a leader's term begins in tests; each of its transactions takes place a second after the one before.
var beginning = time.UnixMilli(milliseconds)

const milliseconds = 1_700_000_000_000

// transaction is a header and a body.
func transaction(session int64, cxid int32, zxid int64, kind link.Opcode, body record) record {
	at := milliseconds + 1000*(zxid&0xffff)
	return append(record{}.int64(session).int32(cxid).int64(zxid).int64(at).int32(int32(kind)), body...)
}

func created(path, data string, owned bool) record {
	return record{}.string(path).string(data).openACL().bool(owned).int32(1)
}

func written(path, data string, version int32) record {
	return record{}.string(path).string(data).int32(version)
}

// logOf is a file with these entries.
func logOf(transactions ...record) []byte {
	file := record("ZKLG").int32(2).int64(0)
	for _, transaction := range transactions {
		file = file.int64(int64(adler32.Checksum(transaction))).bytes(transaction)
		file = append(file, 'B')
	}
	return file
}

// serverOf writes a data directory with log files, by the first zxid of each.
func serverOf(t *testing.T, files map[int64][]byte) string {
	t.Helper()
	directory := t.TempDir()
	must(t, os.Mkdir(filepath.Join(directory, "version-2"), 0o700))
	for first, content := range files {
		must(t, os.WriteFile(filepath.Join(directory, "version-2", fmt.Sprintf("log.%x", first)), content, 0o600))
	}
	return directory
}

// zxids is those of a log, in words.
func zxids(transactions []Transaction) string {
	text := ""
	for _, transaction := range transactions {
		text += fmt.Sprintf(" %x", transaction.Zxid)
	}
	return text
}

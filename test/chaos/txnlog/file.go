package txnlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A file begins with a header; each entry is its checksum, its length, its content and the mark of its end. Behind the last
// entry the file is zeros, or nothing.
const (
	headerLength = 4 + 4 + 8 // "ZKLG", the version, an id
	prefixLength = 8 + 4     // the checksum and the length
	entryEnd     = 'B'
	version      = 2
)

// ErrCorrupt means that a log holds something that no server writes, in a place where no crash leaves it.
var ErrCorrupt = errors.New("the log is corrupt")

// parse reads a file. What was written when the server died, or is being written, is not complete: it is left out.
func parse(file []byte) (transactions []Transaction, err error) {
	if len(file) < headerLength {
		return nil, nil
	}
	if !bytes.HasPrefix(file, []byte("ZKLG")) || binary.BigEndian.Uint32(file[4:]) != version {
		return nil, fmt.Errorf("%w: it begins with %q", ErrCorrupt, file[:headerLength])
	}
	rest := file[headerLength:]
	for {
		entry, after, whole := nextEntry(rest)
		if !whole {
			return transactions, checkTail(len(transactions), after)
		}
		transaction, err := readTransaction(entry)
		if err != nil {
			return transactions, fmt.Errorf("%w: entry %d: %w", ErrCorrupt, len(transactions)+1, err)
		}
		transactions, rest = append(transactions, transaction), after
	}
}

// nextEntry takes an entry off. If it is not whole, after is what follows it if its length is right.
func nextEntry(rest []byte) (entry, after []byte, whole bool) {
	if len(rest) < prefixLength {
		return nil, nil, false
	}
	sum, length := binary.BigEndian.Uint64(rest), int64(binary.BigEndian.Uint32(rest[8:]))
	rest = rest[prefixLength:]
	if length == 0 || length >= int64(len(rest)) {
		return nil, nil, false
	}
	entry, end, after := rest[:length], rest[length], rest[length+1:]
	return entry, after, end == entryEnd && sum == uint64(adler32.Checksum(entry))
}

// checkTail tells an entry that is not whole since the server had got no further from one that was damaged later: then
// another follows.
func checkTail(entries int, after []byte) error {
	if _, _, whole := nextEntry(after); whole {
		return fmt.Errorf("%w: entry %d, with others behind it", ErrCorrupt, entries+1)
	}
	return nil
}

// A server's log is its files, in order.
type file struct {
	path  string
	first int64 // the zxid of the first entry
}

// filesSince lists the files of a data directory that may hold transactions after a zxid.
func filesSince(zxid int64, directory string) ([]file, error) {
	entries, err := os.ReadDir(filepath.Join(directory, "version-2"))
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		name, isLog := strings.CutPrefix(entry.Name(), "log.")
		first, err := strconv.ParseUint(name, 16, 64)
		if isLog && err == nil {
			files = append(files, file{filepath.Join(directory, "version-2", entry.Name()), int64(first)})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return int(min(max(a.first-b.first, -1), 1)) })
	for len(files) > 1 && files[1].first <= zxid {
		files = files[1:]
	}
	return files, nil
}

// readServer reads the transactions after a zxid of one server.
func readServer(zxid int64, directory string) ([]Transaction, error) {
	files, err := filesSince(zxid, directory)
	if err != nil {
		return nil, err
	}
	var all []Transaction
	for _, file := range files {
		content, err := os.ReadFile(file.path)
		if err != nil {
			return nil, err
		}
		transactions, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.path, err)
		}
		all = append(all, transactions...)
	}
	return slices.DeleteFunc(all, func(t Transaction) bool { return t.Zxid <= zxid }), nil
}

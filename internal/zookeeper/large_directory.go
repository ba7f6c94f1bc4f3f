package zookeeper

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

const (
	longestSkipped = 256 << 20        // bytes of a list that is read over; a longer one ends the connection
	skippedAtOnce  = 1 << 20          // bytes of it, for which there is a deadline of their own
	largeFor       = 30 * time.Second // how long a directory that was too large is not listed again

	codeRefused = -123 // zk.ErrReconfigDisabled, which no server answers to what sidecars ask
)

// largeDirectories remembers which directories' lists were too long, so that nobody has them sent again and again.
type largeDirectories struct {
	mu    sync.Mutex
	known map[string]largeDirectory
}

type largeDirectory struct {
	bytes int
	until time.Time
}

func (l *largeDirectories) add(path string, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.known, func(_ string, known largeDirectory) bool { return now.After(known.until) })
	if l.known == nil {
		l.known = map[string]largeDirectory{}
	}
	l.known[path] = largeDirectory{bytes, now.Add(largeFor)}
}

// check says whether the list of a directory was too long a short time ago.
func (l *largeDirectories) check(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.known[path]; ok && time.Now().Before(known.until) {
		return &recipes.LargeDirectory{Path: path, Bytes: known.bytes, Max: readerBuffer}
	}
	return nil
}

// listOnce has a directory listed, unless its list was too long a short time ago.
func (v *view) listOnce(path string, list func() ([]string, error)) ([]string, error) {
	large := &v.session.client.reader.large
	if err := large.check(path); err != nil {
		return nil, err
	}
	names, err := list()
	if errors.Is(err, recipes.ErrQuota) { // see skip
		err = cmp.Or(large.check(path), recipes.ErrDirectoryTooLarge)
	}
	return names, err
}

// isTooLong says whether an answer is one that is not taken in, to a list.
func (w *wire) isTooLong(length int) bool {
	if w.session.brief {
		return w.replies > 0 && length > readerBuffer
	}
	return length > mostQueue && w.awaitsOwn(opGetChildren2)
}

// skip hands whoever asked for a list that is too long an error in its place, so that it fails them and nobody else. The directory is
// known before the rest of the list comes: whatever becomes of that, nobody has it sent again.
func (w *wire) skip(length int) (own bool, err error) {
	frame := make([]byte, frameLength+replyHead)
	if _, err := io.ReadFull(w.input, frame); err != nil {
		return false, err
	}
	head := frame[frameLength:]
	xid := int32(binary.BigEndian.Uint32(head))
	due := w.answered(xid)
	if due.xid != xid || due.kind != opGetChildren2 {
		due.lose()
		return false, w.refuse(fmt.Errorf("%w: %d bytes to a request of kind %d", errMalformed, length, due.kind))
	}
	binary.BigEndian.PutUint32(frame, replyHead)
	skipped := int32(codeRefused)
	binary.BigEndian.PutUint32(head[12:], uint32(skipped))
	w.skipped = length - replyHead
	if due.own != nil {
		w.session.client.crowded.add(due.path, length)
		w.answerOwn(due, head)
		return true, nil
	}
	w.session.client.reader.large.add(due.path, length)
	w.reply(head)
	w.ahead = frame
	return false, nil
}

// readOver reads what was not taken in of the reply before.
func (w *wire) readOver() error {
	if w.skipped > longestSkipped {
		return w.refuse(fmt.Errorf("%w: a list of %d bytes", recipes.ErrDirectoryTooLarge, w.skipped))
	}
	for w.skipped > 0 {
		_ = w.Conn.SetReadDeadline(time.Now().Add(w.session.timeout() * 2 / 3)) // fails only once the connection is closed
		n, err := io.CopyN(io.Discard, w.input, int64(min(w.skipped, skippedAtOnce)))
		if err != nil {
			return err
		}
		w.skipped -= int(n)
	}
	return nil
}

// pathIn is the path of a request whose body begins with it.
func pathIn(body []byte) string {
	if len(body) < 4 {
		return ""
	}
	length := int(binary.BigEndian.Uint32(body))
	return string(body[4:][:min(max(0, length), len(body)-4)])
}

// Package reload keeps what is made of files, and makes it anew when what is in them has changed.
package reload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// longest is how many bytes of a file are read at most.
const longest = 4 << 20

// Files hold a value. The content alone decides whether they have changed: a symbolic link that leads elsewhere, a file moved over
// another and one written in place are all the same. While they cannot be used, as when half of them are replaced, the last good
// value stands. So it does while a program may still be writing one of them: half a policy is a policy, too.
type Files[T any] struct {
	names  []string
	parse  func(contents [][]byte) (T, error)
	report func(T, error)
	read   func(name string) (content []byte, written time.Time, err error)

	current atomic.Pointer[T]
	mu      sync.Mutex
	seen    [][]byte
	next    [][]byte  // what is in them now, if that may not be all of it yet
	written time.Time // when that was written, as the files say
	since   time.Time // when that was read first
	trouble string    // why they cannot be used at present, if they cannot

	looks   sync.Mutex
	looking chan struct{} // closed when the look under way is over; nil if there is none
}

// Open reads the files for the first time. The errors of parse name no content. Report gets each new value, and the last good one
// with the error, once for each error, while there is none.
func Open[T any](parse func(contents [][]byte) (T, error), report func(T, error), names ...string) (*Files[T], error) {
	f := &Files[T]{names: names, parse: parse, report: report, read: read}
	_, err := f.load()
	return f, err
}

// Last is the value as it was when the files were last looked at.
func (f *Files[T]) Last() T { return *f.current.Load() }

// patience is how long a caller waits for the disk.
const patience = 250 * time.Millisecond

// Newest looks at the files and returns the value. It stands in the way of connections. Where the disk takes long it returns the last good
// value, and looks on beside its caller.
func (f *Files[T]) Newest() T {
	looked, begun := f.look()
	if !begun { // it may have read the files before they were changed
		select {
		case <-looked:
			looked, _ = f.look()
		case <-time.After(patience):
			return f.Last()
		}
	}
	select {
	case <-looked:
	case <-time.After(patience):
	}
	return f.Last()
}

// look begins to look, unless a look is under way already.
func (f *Files[T]) look() (looked <-chan struct{}, begun bool) {
	f.looks.Lock()
	defer f.looks.Unlock()
	if f.looking != nil {
		return f.looking, false
	}
	done := make(chan struct{})
	f.looking = done
	go func() {
		_ = f.Look() // report has been told
		f.looks.Lock()
		defer f.looks.Unlock()
		f.looking = nil
		close(done)
	}()
	return done, true
}

// Follow looks at the files again and again until ctx ends.
func (f *Files[T]) Follow(ctx context.Context, pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = f.Look()
		}
	}
}

// Look takes over what is in the files if it has changed, and says why not if it cannot.
func (f *Files[T]) Look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.load()
	switch {
	case errors.Is(err, errUnsettled):
		return nil
	case err == nil && (changed || f.trouble != ""):
		f.trouble = ""
		f.report(f.Last(), nil)
	case err != nil && f.trouble != err.Error():
		f.trouble = err.Error()
		f.report(f.Last(), err)
	}
	return err
}

// settled is for how long the files have to have stayed as they are to be taken over: who renders one in place writes half of it first, which
// may be a good value, too. What is there at the start is taken at once. Where a file server's clock is behind by as much, a file that is being
// written seems to be complete.
const settled = time.Second

var errUnsettled = errors.New("the files may not be complete yet")

func (f *Files[T]) load() (changed bool, err error) {
	contents := make([][]byte, len(f.names))
	var written time.Time // last
	for i, name := range f.names {
		content, at, err := f.read(name)
		if err != nil {
			return false, err
		}
		contents[i] = content
		if at.After(written) {
			written = at
		}
	}
	if f.seen != nil && slices.EqualFunc(contents, f.seen, bytes.Equal) {
		f.next = nil
		return false, nil
	}
	if f.seen != nil && !f.isSettled(contents, written) {
		return false, errUnsettled
	}
	f.next = nil
	value, err := f.parse(contents)
	if err != nil {
		return false, err
	}
	f.current.Store(&value)
	f.seen = contents
	return true, nil
}

// isSettled says whether the files were written long enough ago or, where their clock is another one, have been the same for as long.
func (f *Files[T]) isSettled(contents [][]byte, written time.Time) bool {
	now := time.Now()
	if f.next == nil || !written.Equal(f.written) || !slices.EqualFunc(contents, f.next, bytes.Equal) {
		f.next, f.written, f.since = contents, written, now
	}
	return now.Sub(written) >= settled || now.Sub(f.since) >= settled
}

func read(name string) (content []byte, written time.Time, err error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // a flag names it
	if err != nil {
		return nil, written, err
	}
	defer file.Close()
	about, err := file.Stat()
	switch {
	case err != nil:
	case about.IsDir():
		err = syscall.EISDIR
	case !about.Mode().IsRegular():
		err = errors.New("is no regular file")
	}
	if err == nil {
		content, err = io.ReadAll(io.LimitReader(file, longest+1))
	}
	if err == nil && len(content) > longest {
		err = fmt.Errorf("more than %d bytes", longest)
	}
	if err != nil {
		return nil, written, fmt.Errorf("%s: %w", name, err)
	}
	if about, err = file.Stat(); err != nil {
		return nil, written, err
	}
	return content, about.ModTime(), nil
}

// Read reads a file once. It waits for no writer of a pipe, and takes no device.
func Read(name string) ([]byte, error) {
	content, _, err := read(name)
	return content, err
}

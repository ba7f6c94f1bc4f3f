//go:build unix

package fence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A FileStore keeps marks in a file, which all processes of one machine can share: each Raise has a lock on the file of that name with
// ".lock" behind it, and replaces the file as a whole, when it is safe on the disk. It is for disks of the machine, not of a network,
// and for Unix. Do not delete the file: without it late calls pass.
type FileStore struct{ Path string }

// Raise is as Store has it. It does not wait for ctx: a file is written in milliseconds.
func (f FileStore) Raise(_ context.Context, lock string, token int64) (int64, error) {
	unlock, err := f.lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	marks, err := f.read()
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(marks, func(mark sidekeeper.Ticket) bool { return mark.Lock == lock })
	switch {
	case at < 0:
		marks = append(marks, sidekeeper.Ticket{Lock: lock, FencingToken: token})
	case marks[at].FencingToken >= token:
		return marks[at].FencingToken, nil
	default:
		marks[at].FencingToken = token
	}
	return token, f.replace(marks)
}

// lock returns when no other process, and no other call, has it.
func (f FileStore) lock() (unlock func(), err error) {
	file, err := os.OpenFile(f.Path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("marks: %w", err)
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("marks: lock %s: %w", file.Name(), err)
	}
	return func() { file.Close() }, nil
}

func (f FileStore) read() (marks []sidekeeper.Ticket, err error) {
	text, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("marks: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		mark, err := parseTicket(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("marks: %s: %q is %w", f.Path, line, err)
		}
		marks = append(marks, mark)
	}
	return marks, nil
}

// replace has the marks on the disk when it returns.
func (f FileStore) replace(marks []sidekeeper.Ticket) error {
	var text strings.Builder
	for _, mark := range marks {
		fmt.Fprintf(&text, "%s=%d\n", mark.Lock, mark.FencingToken)
	}
	fresh := f.Path + ".new"
	err := synced(fresh, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, func(file *os.File) error {
		_, err := file.WriteString(text.String())
		return err
	})
	if err == nil {
		err = os.Rename(fresh, f.Path)
	}
	if err == nil {
		err = synced(filepath.Dir(f.Path), os.O_RDONLY, func(*os.File) error { return nil })
	}
	if err != nil {
		return fmt.Errorf("marks: %w", err)
	}
	return nil
}

func synced(name string, flags int, write func(*os.File) error) error {
	file, err := os.OpenFile(name, flags, 0o600) //nolint:gosec // the application names it
	if err != nil {
		return err
	}
	defer file.Close()
	if err := write(file); err != nil {
		return err
	}
	return file.Sync()
}

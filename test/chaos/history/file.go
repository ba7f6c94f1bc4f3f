package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// extension ends the names of the files of a history.
const extension = ".history"

// A Writer appends events to the file of one process. Many goroutines may use it.
type Writer struct {
	client int
	mu     sync.Mutex
	file   *os.File
	failed error
}

// Create begins the file of the process with this number, which must not be there yet, in a directory that must be. The
// caller closes it.
func Create(directory string, client int) (*Writer, error) {
	path := filepath.Join(directory, fmt.Sprintf("%05d%s", client, extension))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	w := &Writer{client: client, file: file}
	w.Append(clocks())
	return w, nil
}

// clocks reads the shared clock before and after the wall clock, and takes the middle.
func clocks() Event {
	before, wall, after := Now(), time.Now(), Now()
	return Event{At: before + (after-before)/2, Kind: Clocks, Wall: wall.UnixNano()} //nolint:forbidigo // compared with what ensembles log
}

// Append writes one event with the process's number, and at the time it is now if none is set. When it returns, the event
// outlives the process. What cannot be written is told by Close.
func (w *Writer) Append(event Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	event.Client = w.client
	if event.At == 0 {
		event.At = Now()
	}
	line, err := json.Marshal(event)
	if err == nil {
		_, err = w.file.Write(append(line, '\n'))
	}
	w.failed = cmp.Or(w.failed, err)
}

// Close ends the file, and says whether all of it was written.
func (w *Writer) Close() error {
	w.Append(clocks())
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.failed, w.file.Close())
}

// ReadDirectory returns all events of all processes that have written to a directory, in the order of their times; those of
// one process and one time stay in the order in which they were written. A last line that was not finished is left out.
func ReadDirectory(directory string) ([]Event, error) {
	paths, err := fs.Glob(os.DirFS(directory), "*"+extension)
	if err != nil {
		return nil, err
	}
	var all []Event
	for _, name := range paths {
		events, err := readFile(filepath.Join(directory, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, events...)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}

func readFile(path string) ([]Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parse(bufio.NewReader(file))
}

func parse(file *bufio.Reader) (events []Event, err error) {
	for number := 1; ; number++ {
		line, err := file.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil // what follows the last end of a line was never finished
		}
		if err != nil {
			return nil, err
		}
		event, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		events = append(events, event)
	}
}

func parseLine(line []byte) (event Event, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&event)
	return event, err
}

package stage

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"
)

// announcements takes in what a program says, and keeps the rest of those lines that begin in one way.
type announcements struct {
	beginning []byte

	mu      sync.Mutex
	partial []byte
	lines   []string
	more    chan struct{} // capacity one
}

func newAnnouncements() *announcements {
	return &announcements{beginning: []byte("listening on "), more: make(chan struct{}, 1)}
}

// Write takes in some more.
func (a *announcements) Write(said []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.partial = append(a.partial, said...)
	for {
		line, rest, whole := bytes.Cut(a.partial, []byte("\n"))
		if !whole {
			break
		}
		if announced, ok := bytes.CutPrefix(line, a.beginning); ok {
			a.lines = append(a.lines, string(announced))
		}
		a.partial = rest
	}
	select {
	case a.more <- struct{}{}:
	default:
	}
	return len(said), nil
}

// await returns the lines once there are so many.
func (a *announcements) await(count int, patience time.Duration, exited <-chan struct{}) ([]string, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		if lines := a.all(); len(lines) >= count {
			return lines, nil
		}
		select {
		case <-a.more:
		case <-exited:
			return nil, errors.New("it has ended before it listened")
		case <-timer.C:
			return nil, fmt.Errorf("it does not listen after %v", patience)
		}
	}
}

func (a *announcements) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.lines...)
}

package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// What the ensemble does.
const (
	born    trace.Kind = "session made"
	ended   trace.Kind = "session ended"
	created trace.Kind = "node made"
	removed trace.Kind = "node gone"
)

// Heard is what a caller has read, as it says itself: for how long it holds, Until, counted from no later than now. Token names the hold;
// without one, the caller was told of its lease.
const Heard trace.Kind = "heard"

// A Line is a step of the code's, or one of the ensemble's, or of a caller's.
type Line struct {
	At      time.Duration `json:"at"` // since the beginning, in true time
	Kind    trace.Kind    `json:"kind"`
	Session int64         `json:"session,omitempty"`
	By      int64         `json:"by,omitempty"` // the session that proves it, too
	Place   string        `json:"place,omitempty"`
	Token   int64         `json:"token,omitempty"` // of a grant; and the transaction that has made a node
	Owner   int64         `json:"owner,omitempty"` // of a node that is gone, where it was another session that deleted it

	Sent     time.Duration `json:"sent,omitempty"`
	Answered time.Duration `json:"answered,omitempty"`
	Until    time.Duration `json:"until,omitempty"`
	Clock    time.Duration `json:"clock,omitempty"`   // of the session's sidecar
	Timeout  time.Duration `json:"timeout,omitempty"` // of a session that was made
}

// A Recorder notes what it is told, from the first thing on.
type Recorder struct {
	mu     sync.Mutex
	began  time.Time
	clocks map[int64]func() time.Duration
	owners map[string]int64 // sessions by place
	lines  []Line
}

// NewRecorder has noted nothing.
func NewRecorder() *Recorder {
	return &Recorder{clocks: map[int64]func() time.Duration{}, owners: map[string]int64{}}
}

// Step notes what the code has done.
func (r *Recorder) Step(s trace.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Clock != nil {
		r.clocks[s.Session] = s.Clock
	}
	line := Line{Kind: s.Kind, Session: s.Session, By: s.By, Place: s.Place, Token: s.Token, Sent: s.Sent, Answered: s.Answered, Until: s.Until}
	switch s.Kind {
	case trace.Granted:
		line.Clock = r.clock(r.owners[s.Place])
	case trace.Promised, trace.Woken:
		line.Clock = r.clock(s.Session)
	}
	r.note(line)
}

// Change notes what the ensemble has done.
func (r *Recorder) Change(c simulation.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Timeout > 0 {
		r.note(Line{Kind: born, Session: c.Session, Timeout: c.Timeout})
	}
	for _, path := range c.Made {
		r.owners[path] = c.Session
		r.note(Line{Kind: created, Session: c.Session, Place: path, Token: c.Zxid})
	}
	for _, lost := range c.Gone {
		if c.Ended && lost.Owner == c.Session {
			continue // it goes with its session
		}
		r.note(Line{Kind: removed, Session: c.Session, Place: lost.Path, Owner: lost.Owner, Clock: r.clock(lost.Owner)})
	}
	if c.Ended {
		r.note(Line{Kind: ended, Session: c.Session, Clock: r.clock(c.Session)})
	}
}

// clock is what the clock of a session's sidecar shows; 0 if the code has never heard of the session.
func (r *Recorder) clock(session int64) time.Duration {
	clock, known := r.clocks[session]
	if !known {
		return 0
	}
	return clock()
}

func (r *Recorder) note(line Line) {
	if r.began.IsZero() {
		r.began = time.Now()
	}
	line.At = time.Since(r.began)
	r.lines = append(r.lines, line)
}

// Write writes what was noted into a file.
func (r *Recorder) Write(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	for _, line := range r.lines {
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(text.String()), 0o600)
}

// Read reads all the files in a folder, in the order of their names.
func Read(folder string) (recorded [][]Line, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		lines, err := readFile[Line](name)
		if err != nil {
			return nil, err
		}
		recorded = append(recorded, lines)
	}
	return recorded, nil
}

// readFile reads a file of JSON lines.
func readFile[L any](name string) (lines []L, err error) {
	text, err := os.ReadFile(filepath.Clean(name))
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var line L
		err := decoder.Decode(&line)
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		lines = append(lines, line)
	}
}

package ensemble

import (
	"bytes"
	"io"
	"sync"
)

// A lineWriter lets several processes write to one writer, line by line.
type lineWriter struct {
	mutex sync.Mutex
	to    io.Writer
}

// from is the writer of one of them, whose lines begin with a prefix.
func (l *lineWriter) from(prefix string) io.Writer { return &source{lines: l, prefix: prefix} }

// A source is used by one goroutine.
type source struct {
	lines   *lineWriter
	prefix  string
	pending []byte
}

// Write writes the lines that are whole. What the writer says is ignored: a log that cannot be shown is no reason to
// stop a server.
func (s *source) Write(text []byte) (int, error) {
	s.lines.mutex.Lock()
	defer s.lines.mutex.Unlock()
	s.pending = append(s.pending, text...)
	for {
		line, rest, whole := bytes.Cut(s.pending, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		io.WriteString(s.lines.to, s.prefix+string(line)+"\n")
		s.pending = rest
	}
}

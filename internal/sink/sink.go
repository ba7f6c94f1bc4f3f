// Package sink writes the lines of logs. Who reads a log may stop: the other end of a pipe, a terminal, a disk. No caller that writes a line
// waits for that. Lines wait in memory up to a bound; a line beyond it is dropped and counted.
package sink

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

const (
	// Delay is how long a line of a log waits for others to be written with: each write costs a call more than the line.
	Delay = 250 * time.Millisecond
	// Brief is how long a line waits that operators count on.
	Brief = 2 * time.Millisecond

	room     = 512 << 10   // bytes of one log that wait or are being written, at most
	block    = 64 << 10    // bytes that wait for no others
	again    = time.Second // between two attempts to write, once one has failed
	stuck    = time.Second // how long a write takes until its reader counts as gone
	farewell = time.Second // how long the last lines may take
)

var errSlow = errors.New("a write takes longer than a second")

// A Sink writes the lines of one or several logs to one place, in their order.
type Sink struct {
	to      io.Writer
	timer   *time.Timer // fires when it is time to write
	closes  chan struct{}
	done    chan struct{} // closed when nothing is written any more
	closing sync.Once

	mu      sync.Mutex
	beside  []*Sink
	logs    []*Log
	waiting []byte
	due     time.Time   // when it is to be written; zero if nothing is
	written []byte      // the lines of the last write, whose memory is used again
	shares  []share     // of that write, by log
	began   time.Time   // when the write under way began; zero if there is none
	slow    *time.Timer // looks whether the write under way takes too long
	failed  bool        // the last write
	ails    bool        // it has failed, or one takes too long, since a write last succeeded
	torn    bool        // the last write ended within a line
	closed  bool
}

// New makes a sink, which the caller must close.
func New(to io.Writer) *Sink {
	s := &Sink{to: to, timer: time.NewTimer(Delay), closes: make(chan struct{}), done: make(chan struct{})}
	s.timer.Stop()
	s.slow = time.AfterFunc(stuck, s.look)
	s.slow.Stop()
	go s.run()
	return s
}

// Beside makes another sink, which is closed with this one.
func (s *Sink) Beside(to io.Writer) *Sink {
	made := New(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beside = append(s.beside, made)
	return made
}

// A Log is one of the logs that a sink writes. Each Write is one line, and never fails.
type Log struct {
	sink *Sink
	of   Options

	waiting       int // lines
	size, writing int // bytes that wait, and that are being written
	before, after int // lines that are missing before and after those that wait, and not told yet

	missing   int     // lines that are missing, since the beginning
	next, now []asker // are told of the lines that wait, and of those that are being written
}

// An asker is told whether no line is missing that was not when so many were.
type asker struct {
	missing int
	then    func(all bool)
}

// answer is then, and what it is to be told. The lock is held.
func (a asker) answer(l *Log, written bool) func() {
	all := written && l.missing == a.missing
	return func() { a.then(all) }
}

// Options are how a log is written. Each of them may be left out.
type Options struct {
	Wait    time.Duration          // for how long a line waits for others to be written with, at most
	Gap     func(lines int) []byte // the line that stands where so many are missing; a plain sentence
	Dropped func(lines int)        // counts lines that are missing

	// Ails is called once when lines cannot be written, and Heals once when they can again, with how many are missing. Neither may wait, or
	// use the sink.
	Ails  func(why error)
	Heals func(missing int)
}

// Log begins a log.
func (s *Sink) Log(of Options) *Log {
	l := &Log{sink: s, of: of}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, l)
	return l
}

// Write implements io.Writer.
func (l *Log) Write(line []byte) (int, error) {
	if !l.add(line) {
		l.drop(1)
	}
	return len(line), nil
}

func (l *Log) add(line []byte) (fits bool) {
	s := l.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || l.writing+l.size+len(line) > room { // a log that is full takes nothing from the others
		l.after++
		l.missing++
		return false
	}
	s.waiting = append(s.waiting, line...)
	l.waiting++
	l.size += len(line)
	wait := l.of.Wait
	if len(s.waiting) >= block {
		wait = 0
	}
	s.writeInLocked(wait)
	return true
}

// writeInLocked has what waits written after a time, or sooner if that was said before.
func (s *Sink) writeInLocked(wait time.Duration) {
	due := time.Now().Add(wait)
	if s.due.IsZero() || due.Before(s.due) {
		s.due = due
		s.timer.Reset(wait)
	}
}

func (l *Log) drop(lines int) {
	if l.of.Dropped != nil && lines > 0 {
		l.of.Dropped(lines)
	}
}

// Sync has what waits written now, and does not wait for that.
func (l *Log) Sync() error {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	l.sink.writeInLocked(0)
	return nil
}

// Takes says whether the log takes further lines, as far as is known: the last write succeeded, none takes long, no line is missing that is not
// told yet, and half of the room is free, so that of many who ask at once none finds it full afterwards.
func (l *Log) Takes() bool {
	s := l.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && !s.failed && l.before+l.after == 0 && l.writing+l.size <= room/2 && !s.isSlow()
}

// isSlow says whether the write under way takes too long. The lock is held.
func (s *Sink) isSlow() bool { return !s.began.IsZero() && time.Since(s.began) >= stuck }

// Missing is how many lines are missing so far.
func (l *Log) Missing() int {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	return l.missing
}

// Written has then called once, perhaps at once: with true when all lines are written that were given to the log since Missing said so many, and
// with false when one may be missing, or a write takes too long. then must not wait.
func (l *Log) Written(missing int, then func(all bool)) {
	s, asks := l.sink, asker{missing, then}
	s.mu.Lock()
	bad := s.closed || s.isSlow() || l.missing != missing
	switch {
	case !bad && l.waiting > 0:
		l.next = append(l.next, asks)
	case !bad && l.writing > 0:
		l.now = append(l.now, asks)
	default:
		defer asks.answer(l, !bad)()
	}
	s.mu.Unlock()
}

// look has those told that wait for a write which takes too long.
func (s *Sink) look() {
	s.mu.Lock()
	var told []func()
	if s.isSlow() {
		s.ailLocked(errSlow)
		for _, l := range s.logs {
			for _, asks := range slices.Concat(l.now, l.next) {
				told = append(told, asks.answer(l, false))
			}
			l.now, l.next = nil, nil
		}
	}
	s.mu.Unlock()
	for _, tell := range told {
		tell()
	}
}

func (s *Sink) ailLocked(why error) {
	if s.ails {
		return
	}
	s.ails = true
	for _, l := range s.logs {
		if l.of.Ails != nil {
			l.of.Ails(why)
		}
	}
}

// healLocked takes in that lines were written, which say of these shares that lines are missing.
func (s *Sink) healLocked(shares []share) {
	if !s.ails {
		return
	}
	s.ails = false
	for i, of := range shares {
		if l := s.logs[i]; l.of.Heals != nil {
			l.of.Heals(of.before + of.after + l.before + l.after)
		}
	}
}

// Close writes what waits, for a second at most, and says whether that was done. Further lines are dropped.
func (s *Sink) Close() bool {
	s.mu.Lock()
	all := append([]*Sink{s}, s.beside...)
	s.mu.Unlock()
	for _, each := range all {
		each.closing.Do(func() { close(each.closes) })
	}
	over := time.After(farewell)
	for _, each := range all {
		select {
		case <-each.done:
		case <-over:
			return false
		}
	}
	return true
}

func (s *Sink) run() {
	defer close(s.done)
	defer s.timer.Stop()
	for {
		select {
		case <-s.timer.C:
			s.write(false)
		case <-s.closes:
			s.write(true)
			return
		}
	}
}

// A share is how many lines of one log a block has, and how many it says are missing.
type share struct{ waiting, before, after int }

func (s *Sink) write(last bool) {
	lines, shares := s.take(last)
	if len(lines) == 0 {
		return
	}
	n, err := s.to.Write(lines)
	told := s.conclude(lines, shares, n, err)
	for i, of := range shares {
		if err != nil {
			s.logs[i].drop(of.waiting)
		}
	}
	for _, tell := range told {
		tell()
	}
}

// conclude takes in how a write has ended, and returns who is to be told.
func (s *Sink) conclude(lines []byte, shares []share, n int, err error) (told []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = time.Time{}
	s.slow.Stop()
	if s.failed = err != nil; n > 0 {
		s.torn = lines[n-1] != '\n'
	}
	for i, of := range shares {
		l := s.logs[i]
		for _, asks := range l.now {
			told = append(told, asks.answer(l, !s.failed))
		}
		if l.writing, l.now = 0, nil; s.failed {
			l.before += of.waiting + of.before + of.after
			l.missing += of.waiting
		}
	}
	if s.failed {
		s.writeInLocked(again)
		s.ailLocked(err)
	} else {
		s.healLocked(shares)
	}
	return told
}

// take is what waits, with a line wherever some are missing. It is good until the next one.
func (s *Sink) take(last bool) (lines []byte, shares []share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares = s.shares[:0]
	var before, after []byte
	if s.torn {
		before = []byte("\n")
	}
	for _, l := range s.logs {
		before, after = append(before, l.gap(l.before)...), append(after, l.gap(l.after)...)
		s.shares = append(s.shares, share{l.waiting, l.before, l.after})
		l.waiting, l.size, l.writing, l.before, l.after = 0, 0, l.size, 0, 0
		l.now, l.next = l.next, nil
	}
	if lines = s.waiting; len(before)+len(after) > 0 {
		lines = append(append(before, s.waiting...), after...)
	}
	s.waiting, s.written, s.closed, s.due = s.written[:0], s.waiting, last, time.Time{}
	if cap(s.written) > block {
		s.written = nil
	}
	if len(lines) > 0 {
		s.began = time.Now()
		s.slow.Reset(stuck)
	}
	return lines, s.shares
}

func (l *Log) gap(lines int) []byte {
	switch {
	case lines == 0:
		return nil
	case l.of.Gap == nil:
		return fmt.Appendf(nil, "%d lines are missing here\n", lines)
	}
	return l.of.Gap(lines)
}

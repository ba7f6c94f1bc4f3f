package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/internal/sink"
)

// Where the audit log goes, if not into a file.
const (
	auditToLog = "stderr"
	auditOff   = "off"
)

func isAuditLog(text string) bool {
	return text == auditToLog || text == auditOff || filepath.IsAbs(text)
}

// An audit is the audit log. It implements service.Record.
type audit struct {
	*sink.Log

	log     *zap.Logger
	refused *atomic.Int64 // what was not granted since it could not be told
}

// Takes counts what is refused.
func (a audit) Takes() bool { return a.counts(a.Log.Takes()) }

// Written counts what is refused.
func (a audit) Written(missing int, then func(all bool)) {
	a.Log.Written(missing, func(all bool) { then(a.counts(all)) })
}

func (a audit) counts(granted bool) bool {
	if !granted {
		a.refused.Add(1)
	}
	return granted
}

// newAudit makes the audit log, which is closed with the log. If that is elsewhere, the log says when the audit log cannot be written.
func (s *settings) newAudit(logged *sink.Sink, log *zap.Logger, dropped func(lines int)) (audit, error) {
	config := encoding()
	config.MessageKey = "event"
	made := audit{refused: &atomic.Int64{}}
	options := sink.Options{Dropped: dropped}
	switch s.auditLog {
	case auditOff:
		made.log = zap.NewNop()
		return made, nil
	case auditToLog:
		return made.to(logged, s.encoder(config), options), nil
	}
	file := &auditFile{path: s.auditLog}
	if err := file.open(); err != nil {
		return audit{}, fmt.Errorf("--audit-log: %w", err)
	}
	options.Ails, options.Heals = s.auditTroubles(log, made.refused)
	return made.to(logged.Beside(show.LogWriter(file)), zapcore.NewJSONEncoder(config), options), nil
}

func (a audit) to(to *sink.Sink, encoder zapcore.Encoder, options sink.Options) audit {
	const name = "audit"
	gap := zapcore.Entry{Level: zapcore.InfoLevel, LoggerName: name, Message: "gap"}
	options.Wait, options.Gap = sink.Brief, gapLine(encoder, gap)
	a.Log = to.Log(options)
	a.log = zap.New(zapcore.NewCore(encoder, a.Log, zapcore.InfoLevel), zap.ErrorOutput(a.Log)).Named(name)
	return a
}

// auditTroubles say in the sidecar's log that the audit log cannot be written, and that it can again.
func (s *settings) auditTroubles(log *zap.Logger, refused *atomic.Int64) (begin func(why error), end func(missing int)) {
	log = log.With(zap.String("file", s.auditLog))
	what := "the audit log cannot be written: its lines are dropped"
	if s.auditStrict {
		what = "the audit log cannot be written: nothing is granted"
	}
	var since time.Time
	return func(why error) {
			since = time.Now()
			log.Error(what, zap.Error(why))
		}, func(missing int) {
			log.Info("the audit log can be written again", zap.Duration("after", time.Since(since)), zap.Int("lines", missing),
				zap.Int64("refused", refused.Swap(0)))
		}
}

// auditPause is how long lines may go into a file that was moved away.
const auditPause = time.Second

// An auditFile is appended to, and opened again when something else lies at its path.
type auditFile struct {
	path   string
	file   *os.File
	looked time.Time
}

// open opens the file at the path. Nobody but the sidecar's user reads it.
func (a *auditFile) open() error {
	opened, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("%s is a pipe that has no reader", a.path)
	}
	if err != nil {
		return err
	}
	if a.file != nil {
		err = a.file.Close()
	}
	a.file, a.looked = opened, time.Now()
	return err
}

// Write implements io.Writer.
func (a *auditFile) Write(line []byte) (int, error) {
	if time.Since(a.looked) > auditPause {
		if err := a.follow(); err != nil {
			return 0, err
		}
		a.looked = time.Now()
	}
	return a.file.Write(line)
}

// follow opens the file again if it was moved away.
func (a *auditFile) follow() error {
	there, err := os.Stat(a.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	own, failure := a.file.Stat()
	if failure != nil {
		return failure
	}
	if err == nil && os.SameFile(there, own) {
		return nil
	}
	return a.open()
}

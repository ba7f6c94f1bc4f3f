package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// An audit is the audit log, and says whether it takes further lines.
type audit struct {
	log   *zap.Logger
	takes func() bool
}

// newAudit makes the audit log, which is closed with the log.
func (s *settings) newAudit(logged *sink.Sink, dropped func(lines int)) (audit, error) {
	config := encoding()
	config.MessageKey = "event"
	switch s.auditLog {
	case auditOff:
		return audit{log: zap.NewNop(), takes: func() bool { return true }}, nil
	case auditToLog:
		return newAuditTo(logged, s.encoder(config), dropped), nil
	}
	file := &auditFile{path: s.auditLog}
	if err := file.open(); err != nil {
		return audit{}, fmt.Errorf("--audit-log: %w", err)
	}
	return newAuditTo(logged.Beside(show.LogWriter(file)), zapcore.NewJSONEncoder(config), dropped), nil
}

func newAuditTo(to *sink.Sink, encoder zapcore.Encoder, dropped func(lines int)) audit {
	const name = "audit"
	gap := zapcore.Entry{Level: zapcore.InfoLevel, LoggerName: name, Message: "gap"}
	lines := to.Log(sink.Options{Wait: sink.Brief, Gap: gapLine(encoder, gap), Dropped: dropped})
	log := zap.New(zapcore.NewCore(encoder, lines, zapcore.InfoLevel), zap.ErrorOutput(lines)).Named(name)
	return audit{log, lines.Takes}
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

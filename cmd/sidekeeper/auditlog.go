package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/sidekeeper/sidekeeper/internal/show"
)

// Where the audit log goes, if not into a file.
const (
	auditToLog = "stderr"
	auditOff   = "off"
)

func isAuditLog(text string) bool {
	return text == auditToLog || text == auditOff || filepath.IsAbs(text)
}

// newAudit makes the audit log. What it returns must be closed.
func (s *settings) newAudit(logged io.Writer) (*zap.Logger, io.Closer, error) {
	config := encoding()
	config.MessageKey = "event"
	switch s.auditLog {
	case auditOff:
		return zap.NewNop(), io.NopCloser(nil), nil
	case auditToLog:
		return auditLogger(s.encoder(config), logged), io.NopCloser(nil), nil
	}
	file := &auditFile{path: s.auditLog}
	if err := file.open(); err != nil {
		return nil, nil, fmt.Errorf("--audit-log: %w", err)
	}
	return auditLogger(zapcore.NewJSONEncoder(config), file), file, nil
}

func auditLogger(encoder zapcore.Encoder, to io.Writer) *zap.Logger {
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(show.LogWriter(to))), zapcore.InfoLevel)).Named("audit")
}

// auditPause is how long lines may go into a file that was moved away.
const auditPause = time.Second

// An auditFile is appended to, and opened again when something else lies at its path.
type auditFile struct {
	path string

	mu     sync.Mutex
	file   *os.File
	looked time.Time
}

// open opens the file at the path. Nobody but the sidecar's user reads it.
func (a *auditFile) open() error {
	opened, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
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
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.looked) > auditPause {
		a.looked = time.Now()
		if err := a.follow(); err != nil {
			return 0, err
		}
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

// Close implements io.Closer.
func (a *auditFile) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.file.Close()
}

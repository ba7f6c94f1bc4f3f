package service

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/service/policy"
)

// policyPause is how long a changed policy may stay unnoticed.
const policyPause = time.Second

// A policyFile is the policy that lies in a file, read again when its content has changed. A version that cannot be used is
// reported, and the last good one stays in force. What was decided by an earlier version stands: streams that are open go on.
type policyFile struct {
	name    string
	log     *zap.Logger
	refused func(bool) // told whether the file's present version cannot be used
	current atomic.Pointer[policy.Policy]
	seen    []byte // the content that was last read
	trouble string // why it cannot be used, if it cannot
}

// openPolicy reads the file for the first time; without a name there is no policy, which is nil.
func openPolicy(name string, log *zap.Logger, refused func(bool)) (*policyFile, error) {
	if name == "" {
		return nil, nil
	}
	f := &policyFile{name: name, log: log, refused: refused}
	content, err := f.read()
	if err != nil {
		return nil, err
	}
	parsed, err := f.parse(content)
	if err != nil {
		return nil, err
	}
	f.seen = content
	f.current.Store(parsed)
	log.Info("policy in force", zap.String("file", name), zap.Int("rules", parsed.Size()))
	return f, nil
}

func (f *policyFile) newest() *policy.Policy { return f.current.Load() }

// follow looks at the file again and again until ctx ends.
func (f *policyFile) follow(ctx context.Context) {
	if f == nil {
		return
	}
	ticker := time.NewTicker(policyPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.look()
		}
	}
}

// look takes over the file's content if it has changed. The content alone counts: a symbolic link that leads elsewhere, a file moved
// over it and one written in place are all the same.
func (f *policyFile) look() {
	content, err := f.read()
	if err != nil {
		f.refuse(err)
		return
	}
	if bytes.Equal(content, f.seen) {
		if f.trouble != "" { // of a file that could not be read and is back
			f.retry(content)
		}
		return
	}
	f.retry(content)
}

func (f *policyFile) retry(content []byte) {
	f.seen = content
	parsed, err := f.parse(content)
	if err != nil {
		f.refuse(err)
		return
	}
	f.trouble = ""
	f.refused(false)
	f.current.Store(parsed)
	f.log.Info("policy taken over", zap.String("file", f.name), zap.Int("rules", parsed.Size()))
}

// refuse tells of trouble once, however long it lasts.
func (f *policyFile) refuse(trouble error) {
	if f.trouble == trouble.Error() {
		return
	}
	f.trouble = trouble.Error()
	f.refused(true)
	f.log.Error("policy not taken over; the last good one stays in force", zap.Error(trouble))
}

func (f *policyFile) parse(content []byte) (*policy.Policy, error) {
	return policy.Parse(f.name, content, policyActions(), brokenRule)
}

func (f *policyFile) read() ([]byte, error) {
	file, err := os.Open(f.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, policy.Longest+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return content, nil
}

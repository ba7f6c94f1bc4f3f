package main

import (
	"bytes"
	"os"
	"slices"
	"sync"

	"go.uber.org/zap"
)

// A fresh value is made of files, and made anew when what is in them has changed. While they cannot be used, as when half of them are
// replaced, the last good value stands, and the log says why, once.
type fresh[T any] struct {
	flag  string // for the log
	files []string
	parse func(contents [][]byte) (T, error) // whose errors name no content
	log   *zap.Logger

	mu      sync.Mutex
	seen    [][]byte
	value   T
	trouble string
}

func newFresh[T any](log *zap.Logger, flag string, parse func([][]byte) (T, error), files ...string) (*fresh[T], error) {
	f := &fresh[T]{flag: flag, files: files, parse: parse, log: log}
	err := f.look()
	return f, err
}

// newest looks at the files and returns the value.
func (f *fresh[T]) newest() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	trouble := ""
	if err := f.look(); err != nil {
		trouble = err.Error()
	}
	if trouble != "" && trouble != f.trouble {
		f.log.Error("files not reloaded; what they last held is used", zap.String("flag", f.flag), zap.String("error", trouble))
	}
	f.trouble = trouble
	return f.value
}

func (f *fresh[T]) look() error {
	contents := make([][]byte, len(f.files))
	for i, name := range f.files {
		var err error
		if contents[i], err = os.ReadFile(name); err != nil { //nolint:gosec // a flag names it
			return err
		}
	}
	if slices.EqualFunc(contents, f.seen, bytes.Equal) {
		return nil
	}
	value, err := f.parse(contents)
	if err != nil {
		return err
	}
	if f.seen != nil {
		f.log.Info("files reloaded", zap.String("flag", f.flag))
	}
	f.value, f.seen = value, contents
	return nil
}

// Package crosscheck has rounds of faults judged a second time, by a program in Python that was written from docs/guarantees.md alone and
// shares no code with package judge, nor a language: what both overlook is less likely. The program reads the same histories and the same
// transaction logs. It finds python3 where the search path does.
package crosscheck

import (
	"bytes"
	"context"
	_ "embed" // for the programs
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

//go:embed judge.py
var judge string

//go:embed export.py
var export string

// A Verdict is what the second judge says.
type Verdict struct {
	Counts     Counts      `json:"counts"`
	Violations []Violation `json:"violations"`
	Unjudged   string      `json:"unjudged"` // why it could not judge; empty if it could
}

// Counts are of what it has judged.
type Counts struct {
	Grants  int `json:"grants"`
	Numbers int `json:"numbers"`
	Guarded int `json:"guarded"` // writes that a lock guarded
}

// A Violation is a promise that was broken.
type Violation struct {
	Promise string `json:"promise"` // its number in docs/guarantees.md
	Text    string `json:"text"`
}

// violated and unable are the judge's exit codes when it has something to say.
const (
	violated = 1
	unable   = 2
)

// Judge has a round judged by the histories in a directory and the directories of all servers' transaction logs. Transactions up to
// since are left out.
func Judge(ctx context.Context, since int64, histories string, logs []string) (verdict Verdict, err error) {
	said, err := run(ctx, judge, append([]string{"--since", strconv.FormatInt(since, 10), histories}, logs...))
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(said) > 0 && (exit.ExitCode() == violated || exit.ExitCode() == unable) {
		err = nil
	}
	if err == nil {
		err = json.Unmarshal(said, &verdict)
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("the second judge: %w", err)
	}
	return verdict, nil
}

// Export writes the histories in a directory as history.jsonl and history.edn beside them, in the form that other checkers read.
func Export(ctx context.Context, histories string) error {
	if _, err := run(ctx, export, []string{histories}); err != nil {
		return fmt.Errorf("the history in EDN: %w", err)
	}
	return nil
}

// run runs a program with its arguments, and returns what it prints; an error has what it said besides.
func run(ctx context.Context, program string, arguments []string) ([]byte, error) {
	var out, said bytes.Buffer
	command := exec.CommandContext(ctx, "python3", append([]string{"-"}, arguments...)...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(program), &out, &said
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &said)
	}
	return out.Bytes(), err
}

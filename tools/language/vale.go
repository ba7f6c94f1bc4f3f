package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// findingsIn has Vale read a repository's files once. Documents, protos and the commands' manual it reads itself, and the texts and
// the comments in source code from files that hold nothing else.
func findingsIn(ctx context.Context, root string) (findings, error) {
	names, err := git(ctx, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "language-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)

	args, sources := []string{}, map[string]source{}
	for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == 0 }) {
		if !isProse(name) && !isShippedCode(name) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name)) //nolint:gosec // what the repository has
		switch {
		case os.IsNotExist(err): // deleted, and not yet committed
		case err != nil:
			return nil, err
		case isProse(name):
			args = append(args, name)
			sources[name] = source{file: name}
		default:
			text, lines := textsOf(name, string(content))
			copied := filepath.Join(folder, strings.ReplaceAll(name, "/", "-"))
			sources[copied+".md"] = source{file: name, lines: lines}
			sources[copied+".comments"] = source{file: name, kind: "Comment"}
			args = append(args, copied+".md", copied+".comments")
			if err := errors.Join(
				os.WriteFile(copied+".md", []byte(text), 0o600),
				os.WriteFile(copied+".comments", []byte(commentsOf(name, string(content))), 0o600),
			); err != nil {
				return nil, err
			}
		}
	}
	return vale(ctx, root, args, sources)
}

// A source is where a text that Vale reads comes from: the file, and for each line of the text the file's line, if that differs.
type source struct {
	file  string
	kind  string // before the names of rules: of comments, which have ceilings of their own
	lines []int
}

func (s source) line(read int) int {
	if s.lines == nil {
		return read
	}
	return s.lines[read-1]
}

// vale finds in the named files.
func vale(ctx context.Context, root string, files []string, sources map[string]source) (findings, error) {
	args := append([]string{"tool", "-modfile=tools/vale/go.mod", "vale", "--no-global", "--output=JSON"}, files...)
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // files of the repository
	command.Dir, command.Stderr = root, os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("vale: %w: %s", err, output)
	}
	var alerts map[string][]struct {
		Check string `json:"Check"`
		Line  int    `json:"Line"`
	}
	if err := json.Unmarshal(output, &alerts); err != nil {
		return nil, fmt.Errorf("vale: %w: %s", err, output)
	}
	found := findings{}
	for file, all := range alerts {
		from := sources[file]
		for _, alert := range all {
			at := place{from.file, from.kind + strings.TrimPrefix(alert.Check, "Sidekeeper.")}
			found[at] = append(found[at], from.line(alert.Line))
		}
	}
	return found, nil
}

// git is what it prints in a repository.
func git(ctx context.Context, root string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the arguments are ours
	command.Dir = root
	var says bytes.Buffer
	command.Stderr = &says
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(says.String()))
	}
	return string(output), nil
}

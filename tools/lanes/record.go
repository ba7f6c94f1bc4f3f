package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A workplace is what lanes rest on: the tree, and the programs of the machine.
type workplace struct {
	tree  tree
	tools map[string][]string // the versions of the programs of each part of tools/need
}

// inputs are the lines that say what a lane rests on: `input PATH HASH` and `tool PART VERSION`.
func (w workplace) inputs(ctx context.Context, lane *Lane) ([]string, error) {
	lines := []string{"tool go " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	for _, path := range slices.Concat(common, lane.Owns, lane.Reads) {
		hash, err := w.tree.hash(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("lane %s: %s is no part of the repository: %w", lane.Name, path, err)
		}
		lines = append(lines, "input "+path+" "+hash)
	}
	for _, part := range lane.Needs {
		lines = append(lines, w.tools[part]...)
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// toolsOf asks tools/need for the versions of the programs that lanes take.
func toolsOf(ctx context.Context, root string, lanes []Lane) (map[string][]string, error) {
	arguments := []string{"--versions"}
	for i := range lanes {
		if lanes[i].When == Changed {
			arguments = append(arguments, lanes[i].Needs...)
		}
	}
	slices.Sort(arguments[1:])
	command := exec.CommandContext(ctx, filepath.Join("tools", "need"), slices.Compact(arguments)...) //nolint:gosec // parts of the table
	command.Dir = root
	said, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("tools/need: %w", err)
	}
	tools := map[string][]string{}
	for line := range strings.Lines(string(said)) {
		part, _, _ := strings.Cut(line, " ")
		tools[part] = append(tools[part], "tool "+strings.TrimSpace(line))
	}
	return tools, nil
}

// A record says with which inputs a lane passed.
type record struct {
	commit  string
	seconds string
	inputs  []string
}

// read takes the record of a lane. A lane without one has an empty record, which fits no inputs.
func read(path string) (record, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a path of the table
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	var r record
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "commit":
			r.commit = rest
		case "seconds":
			r.seconds = rest
		default: // a line that says something else fits no inputs either
			r.inputs = append(r.inputs, line)
		}
	}
	return r, err
}

func (r record) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as other folders of the tree
		return err
	}
	text := fmt.Sprintf("commit %s\nseconds %s\n%s\n", r.commit, r.seconds, strings.Join(r.inputs, "\n"))
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // as other files of the tree
}

// differs names what stands in one list and not in the other; it is empty if the record holds.
func (r record) differs(now []string) string {
	var names []string
	for _, lists := range [][2][]string{{now, r.inputs}, {r.inputs, now}} {
		for _, line := range lists[0] {
			words := strings.Fields(line + " ? ?")
			if name := words[1]; !slices.Contains(lists[1], line) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

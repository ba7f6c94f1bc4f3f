package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// How much of the table is run.
type extent int

const (
	commits extent = iota // what a commit must pass: lanes that always run, and those without a record that holds
	all                   // every lane but those of the night, whatever is recorded
	night                 // every lane, but what has passed in an earlier run of the night with this very tree
)

// A step is a lane in a plan.
type step struct {
	lane   *Lane
	runs   bool
	rests  bool // whether it does not run because its record holds
	why    string
	inputs []string
	record string // where to write that it has passed; empty if nowhere
}

// plan decides of each lane whether it runs.
func plan(ctx context.Context, w workplace, lanes []Lane, much extent) ([]*step, error) {
	root := w.tree.root
	var steps []*step
	for i := range lanes {
		lane := &lanes[i]
		s := &step{lane: lane, runs: true, why: "it always runs"}
		var err error
		switch {
		case much == night:
			s.inputs, s.record = []string{"input . " + w.tree.id}, filepath.Join(root, "bin", "nightly", lane.Name)
			err = s.rest(root, "the tree has changed since it passed: ")
		case lane.When == Nightly:
			s.runs, s.why = false, "it runs at night"
		case lane.When == Changed:
			s.record = filepath.Join(root, records, lane.Name)
			if s.inputs, err = w.inputs(ctx, lane); err == nil {
				err = s.rest(root, "changed since it passed: ")
			}
			if much == all {
				s.runs, s.why = true, "all lanes run"
			}
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// rest leaves the lane out if its record holds.
func (s *step) rest(root, otherwise string) error {
	r, err := read(s.record)
	if err != nil {
		return err
	}
	switch differs := r.differs(s.inputs); {
	case len(r.inputs) == 0:
		s.why = "there is no record"
	case differs != "":
		s.why = otherwise + differs
	default:
		name, _ := filepath.Rel(root, s.record)
		s.runs, s.rests = false, true
		s.why = fmt.Sprintf("%s says that it passed with these inputs in %s s, at %s", filepath.ToSlash(name), r.seconds, r.commit)
	}
	return nil
}

// owner is the lane that a file belongs to. It is nil if there is none, and for a file of all lanes.
func owner(lanes []Lane, file string) (lane *Lane, shared bool) {
	longest := ""
	for _, path := range common {
		if covers(path, file) {
			longest, shared = path, true
		}
	}
	for i := range lanes {
		for _, path := range lanes[i].Owns {
			if covers(path, file) && len(path) > len(longest) {
				longest, lane, shared = path, &lanes[i], false
			}
		}
	}
	return lane, shared
}

// mistakes are what is wrong with a table for the files that there are.
func mistakes(lanes []Lane, files []string) []string {
	var wrong []string
	seen := map[string]string{}
	for i := range lanes {
		lane := &lanes[i]
		for _, path := range lane.Owns {
			if other, twice := seen[path]; twice {
				wrong = append(wrong, fmt.Sprintf("%s belongs to two lanes, %s and %s", path, other, lane.Name))
			}
			seen[path] = lane.Name
		}
		for _, path := range slices.Concat(lane.Owns, lane.Reads) {
			if !slices.ContainsFunc(files, func(file string) bool { return covers(path, file) }) {
				wrong = append(wrong, fmt.Sprintf("lane %s names %s, which does not exist", lane.Name, path))
			}
		}
	}
	for _, file := range files {
		if lane, shared := owner(lanes, file); lane == nil && !shared && !covers(records, file) {
			wrong = append(wrong, file+" belongs to no lane: see tools/lanes/table.go")
		}
	}
	return wrong
}

func covers(path, file string) bool { return file == path || strings.HasPrefix(file, path+"/") }

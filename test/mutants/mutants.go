// Package mutants holds seeded bugs that the tests must notice. A test that cannot fail proves nothing. So for each thing that is
// promised there is a mutant that breaks it, and a test that must complain of it: one that is there for the promise, and does
// not know the mutant.
//
// A mutant is a patch below testdata. It never touches the tree: the files that it changes are written elsewhere, and the
// build is told to read them in place of those in the tree.
package mutants

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A Mutant is one seeded bug.
type Mutant struct {
	ID       string // as plan and patch name it
	Bug      string // what is wrong
	Absent   string // why there is no such bug to seed; then there is no patch
	Catchers []Catcher
}

// A Catcher is a test that must complain of a mutant.
type Catcher struct {
	Package   string // its folder
	Test      string // its name, or a part of one as `go test -run` takes it
	Complaint string // what it must say, as a regular expression
	Schedules int    // how many random schedules may be needed; 0 if it plays none
}

// Find returns the mutant with this name.
func Find(id string) (Mutant, error) {
	i := slices.IndexFunc(Table, func(m Mutant) bool { return m.ID == id && m.Absent == "" })
	if i < 0 {
		return Mutant{}, fmt.Errorf("there is no mutant %s", id)
	}
	return Table[i], nil
}

//go:embed testdata/*.patch
var patches embed.FS

func (m Mutant) changes() ([]change, error) {
	text, err := patches.ReadFile("testdata/" + m.ID + ".patch")
	if err != nil {
		return nil, err
	}
	return parse(string(text))
}

// Overlay writes into a folder what the build needs, and returns the file to name in `go build -overlay`. It fails if the patch
// does not fit the tree any more.
func (m Mutant) Overlay(folder string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	changed, err := m.changed(root)
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.ID, err)
	}
	replaced := map[string]string{}
	for i, c := range changed {
		copied := filepath.Join(folder, fmt.Sprintf("%s-%d.go", m.ID, i))
		if err := os.WriteFile(copied, []byte(c.text), 0o600); err != nil {
			return "", err
		}
		replaced[filepath.Join(root, filepath.FromSlash(c.path))] = copied
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, m.ID+".json")
	return path, os.WriteFile(path, overlay, 0o600)
}

// A changedFile is a file as the mutant has it.
type changedFile struct{ path, text string }

// changed applies the patch to what lies below root.
func (m Mutant) changed(root string) ([]changedFile, error) {
	changes, err := m.changes()
	if err != nil {
		return nil, err
	}
	tree := os.DirFS(root)
	changed := make([]changedFile, len(changes))
	for i, c := range changes {
		text, err := fs.ReadFile(tree, c.path)
		if err != nil {
			return nil, err
		}
		changed[i].path = c.path
		if changed[i].text, err = c.apply(string(text)); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// moduleRoot is the folder that go.mod lies in, at or above the one that the process runs in.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", fmt.Errorf("no go.mod at or above the working directory: %w", os.ErrNotExist)
		}
		folder = above
	}
}

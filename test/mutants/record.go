package mutants

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// A record says of which mutants it is known that they are caught: the digest of each one, by its name.
type record map[string]string

// The form of a record's line. Any other line counts for nothing, and its mutant is run.
var recordLine = regexp.MustCompile(`^([A-Z]+\d+[a-z]?)\t([0-9a-f]{64})$`)

// readRecord reads a record. If it names a mutant twice, neither line counts.
func readRecord(text string) record {
	r, seen := record{}, map[string]int{}
	for line := range strings.Lines(text) {
		if found := recordLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); found != nil {
			r[found[1]] = found[2]
			seen[found[1]]++
		}
	}
	maps.DeleteFunc(r, func(id, _ string) bool { return seen[id] > 1 })
	return r
}

// text is the record as a file holds it.
func (r record) text() string {
	var lines strings.Builder
	for _, id := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&lines, "%s\t%s\n", id, r[id])
	}
	return lines.String()
}

// standing is the lines whose mutants still are what they were. A line of a mutant that there is not does not stand.
func (r record) standing(now record) record {
	stands := maps.Clone(r)
	maps.DeleteFunc(stands, func(id, digest string) bool { return now[id] != digest })
	return stands
}

// note notes which of the mutants that were run are caught.
func (r record) note(now record, caught map[string]bool) {
	for id, is := range caught {
		delete(r, id)
		if is {
			r[id] = now[id]
		}
	}
}

// digest is of all that decides whether a mutant is caught, as far as it is the mutant's own: its patch, the files that this changes,
// its catchers, the files that they stand in, and the version of Go.
func (m Mutant) digest(tree fs.FS) (string, error) {
	patch, err := patches.ReadFile("testdata/" + m.ID + ".patch")
	if err != nil {
		return "", err
	}
	return m.digestOf(tree, string(patch), runtime.Version())
}

func (m Mutant) digestOf(tree fs.FS, patch, version string) (string, error) {
	changes, err := parse(patch)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %#v\n", version, patch, m.Catchers)
	var files []string
	for _, c := range changes {
		files = append(files, c.path)
	}
	for _, c := range m.Catchers {
		file, err := c.file(tree)
		if err != nil {
			return "", err
		}
		files = append(files, file)
	}
	for _, file := range files {
		if err := addFile(sum, tree, file); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func addFile(sum io.Writer, tree fs.FS, file string) error {
	text, err := fs.ReadFile(tree, file)
	fmt.Fprintf(sum, "%q %q\n", file, text)
	return err
}

// file is the one that declares the test.
func (c Catcher) file(tree fs.FS) (string, error) {
	name, _, _ := strings.Cut(c.Test, "/")
	files, err := fs.Glob(tree, c.Package+"/*_test.go")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return "", err
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: no file declares %s: %w", c.Package, name, fs.ErrNotExist)
}

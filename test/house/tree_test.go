package house

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/sidekeeper/sidekeeper"

// outside are the folders that hold nothing of ours: what git, the build and the tests leave behind.
var outside = []string{".git", ".cache", "bin", "node_modules", "__pycache__", "dist", "target"}

// A file is one file of the repository.
type file struct {
	path string // from the repository's root, with slashes
	text string
}

// lines counts as an editor does.
func (f file) lines() int {
	return strings.Count(strings.TrimSuffix(f.text, "\n"), "\n") + 1
}

func (f file) isTest() bool {
	return strings.HasSuffix(f.path, "_test.go")
}

func (f file) isGenerated() bool {
	return strings.HasPrefix(f.path, "gen/")
}

// files reads the repository's files whose names end in one of the suffixes; without suffixes, all of them.
func files(t *testing.T, suffixes ...string) []file {
	t.Helper()

	var found []file

	root := os.DirFS(filepath.Join("..", ".."))

	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(outside, entry.Name()):
			return fs.SkipDir
		case !entry.Type().IsRegular() || name == ".git" || !endsInOne(name, suffixes): // a worktree's .git is a file
			return nil
		}

		text, err := fs.ReadFile(root, name)
		found = append(found, file{path: name, text: string(text)})

		return err
	})
	if err != nil {
		t.Fatalf("read the repository: %v", err)
	}

	if len(found) == 0 {
		t.Fatalf("no file ends in any of %q: this test would prove nothing", suffixes)
	}

	return found
}

func endsInOne(name string, suffixes []string) bool {
	return len(suffixes) == 0 ||
		slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// exists says whether the repository has this file or folder.
func exists(name string) bool {
	_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(path.Clean(name))))

	return err == nil
}

func read(t *testing.T, name string) string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

package configsync

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func openTestFolder(t *testing.T, where, prefix string) *folder {
	t.Helper()
	f, err := openFolder(where, prefix, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.mark.Close() })
	return f
}

// present are the names at the top of a folder; states count, but their names do not.
func present(t *testing.T, where string) string {
	t.Helper()
	listed, err := os.ReadDir(where)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range listed {
		name := entry.Name()
		if stateFolder.MatchString(name) {
			name = "STATE"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func wantReplaced(t *testing.T, f *folder, with entries, changed bool) {
	t.Helper()
	if got, err := f.replace(with); err != nil || got != changed {
		t.Fatalf("%v %v, want %v", got, err, changed)
	}
	read, err := readEntries(f.path)
	if diff := cmp.Diff(with, read); diff != "" || err != nil {
		t.Fatalf("%v %s", err, diff)
	}
}

func TestAFolderIsReplacedAsAWhole(t *testing.T) {
	where := filepath.Join(t.TempDir(), "a", "b")
	f := openTestFolder(t, where, "app")
	wantReplaced(t, f, entries{"host": []byte("db1"), "tls/key": []byte("k"), "..data": []byte("d")}, true)
	if got := present(t, where); got != "%2E.data ..data ..sidekeeper STATE host tls" {
		t.Error(got)
	}
	wantReplaced(t, f, entries{"host": []byte("db1"), "tls/key": []byte("k"), "..data": []byte("d")}, false)
	wantReplaced(t, f, entries{"tls": []byte("now a value, too"), "tls/key": []byte("k"), "": []byte("of the prefix")}, true)
	if got := present(t, where); got != "%value ..data ..sidekeeper STATE tls" {
		t.Error(got)
	}
	if value, err := os.ReadFile(filepath.Join(where, "tls", "%value")); err != nil || string(value) != "now a value, too" {
		t.Error(string(value), err)
	}
	wantReplaced(t, f, entries{"tls": []byte("a file")}, true)
	wantReplaced(t, f, entries{}, true)
	if got := present(t, where); got != "..data ..sidekeeper STATE" {
		t.Error(got)
	}
}

func TestAFolderMayBeNamedInAnyWay(t *testing.T) {
	for _, where := range []string{".", "./sync", "sync/", "sync//../other"} {
		t.Run(where, func(t *testing.T) {
			t.Chdir(t.TempDir())
			wantReplaced(t, openTestFolder(t, where, "app"), entries{"host": []byte("db1"), "tls/key": []byte("k")}, true)
			if got := present(t, where); got != "..data ..sidekeeper STATE host tls" {
				t.Error(got)
			}
			if err := (entries{"a/b": []byte("c")}).writeNew("./exported/"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFilesHaveTheModeThatWasAskedFor(t *testing.T) {
	where := t.TempDir()
	modes := func() string {
		var got []string
		for _, name := range []string{"..data", "a", "a/b"} {
			info, err := os.Stat(filepath.Join(where, name))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.Mode().Perm().String())
		}
		return strings.Join(got, " ")
	}
	f := openTestFolder(t, where, "app")
	wantReplaced(t, f, entries{"a/b": {}}, true)
	if got := modes(); got != "-rwx------ -rwx------ -rw-------" {
		t.Error(got)
	}
	f.mode = 0o644
	if changed, err := f.replace(entries{"a/b": {}}); !changed || err != nil {
		t.Error(changed, err)
	}
	if got := modes(); got != "-rwxr-xr-x -rwxr-xr-x -rw-r--r--" {
		t.Error(got)
	}
}

func TestWhatADeadProcessLeftIsRemovedAndCompleted(t *testing.T) {
	where := t.TempDir()
	f := openTestFolder(t, where, "app")
	wantReplaced(t, f, entries{"a": []byte("1"), "gone": []byte("1")}, true)
	f.close()
	// It died after it had switched to the state of b, and another time half-way through a state.
	for _, err := range []error{
		os.Mkdir(filepath.Join(where, "..2026_01_02_03_04_05.17"), 0o700),
		os.WriteFile(filepath.Join(where, "..2026_01_02_03_04_05.17", "half"), []byte("ha"), 0o600),
		os.Symlink("..2026_01_02_03_04_05.17", filepath.Join(where, nextLink)),
		os.Remove(filepath.Join(where, "a")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f = openTestFolder(t, where, "app")
	if got := present(t, where); got != "..data ..sidekeeper STATE gone" {
		t.Error(got)
	}
	wantReplaced(t, f, entries{"a": []byte("1"), "gone": []byte("1")}, false)
	if got := present(t, where); got != "..data ..sidekeeper STATE a gone" {
		t.Error(got)
	}
}

func TestAFolderOfSomebodyElseIsRefused(t *testing.T) {
	where := t.TempDir()
	refused := func(prefix, said string) {
		t.Helper()
		if _, err := openFolder(where, prefix, 0o600); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%v, want %q", err, said)
		}
	}
	if err := os.WriteFile(filepath.Join(where, "theirs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("app", "holds theirs, which sync did not create: choose an empty folder")
	os.Remove(filepath.Join(where, "theirs"))

	f := openTestFolder(t, where, "app")
	wantReplaced(t, f, entries{"a": {}}, true)
	refused("app", "another process maintains "+where)
	f.close()
	refused("other", `holds the files of prefix "app": choose another folder for "other"`)
	for name, put := range map[string]func(string) error{
		"file":    func(name string) error { return os.WriteFile(name, nil, 0o600) },
		"link":    func(name string) error { return os.Symlink("..data/elsewhere", name) },
		"..state": func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		foreign := filepath.Join(where, name)
		if err := put(foreign); err != nil {
			t.Fatal(err)
		}
		refused("app", "holds "+name)
		os.Remove(foreign)
	}
	openTestFolder(t, where, "app").close()
}

func TestAFileInTheWayIsToldAndNotReplaced(t *testing.T) {
	where := t.TempDir()
	f := openTestFolder(t, where, "app")
	wantReplaced(t, f, entries{"a": []byte("1")}, true)
	theirs := filepath.Join(where, "b")
	if err := os.WriteFile(theirs, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.replace(entries{"a": []byte("2"), "b": []byte("2")}); err == nil || !strings.Contains(err.Error(), theirs) {
		t.Error(err)
	}
	if value, _ := os.ReadFile(theirs); string(value) != "theirs" {
		t.Error(string(value))
	}
	os.Remove(theirs)
	wantReplaced(t, f, entries{"a": []byte("2"), "b": []byte("2")}, false)
	if info, err := os.Lstat(theirs); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Error(info, err)
	}
}

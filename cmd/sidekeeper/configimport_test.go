package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/internal/configsync"
)

func TestWhatIsExportedIsImportedAgainFromYAMLAndFromFiles(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	for key, value := range map[string]string{
		"app": "of the prefix", "app/db": "primary", "app/db/host": "db1", "app/..x": "dots", "app/logo": "\x00\xff",
		"app/motd": "two\nlines\n", "apple": "not below app",
	} {
		s.put(key, value)
	}
	want := s.stored("app")
	folder, file := filepath.Join(t.TempDir(), "app"), filepath.Join(t.TempDir(), "app.yaml")
	text, _, code := s.runs("", "export", "app")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil || code != 0 {
		t.Fatal(err, code)
	}
	s.wants(0, "", "export", "app", "--to", folder)
	s.wants(64, "sidekeeper: "+folder+" holds %2E.x: choose an empty folder\n", "export", "app", "--to", folder)
	for _, source := range []string{file, folder, "-"} {
		s.wants(0, "keys deleted: 6\n", "rm", "-r", "app")
		if _, stderr, code := s.runs(text, "import", "app", source); code != 0 {
			t.Fatalf("%s: %d %s", source, code, stderr)
		}
		if diff := cmp.Diff(want, s.stored("app")); diff != "" {
			t.Errorf("%s: %s", source, diff)
		}
		if stdout, _, code := s.runs(text, "import", "app", source, "--prune"); code != 0 || stdout != "nothing differs\n" {
			t.Errorf("%s: %d %s", source, code, stdout)
		}
	}
}

func TestAnImportWritesOnlyWhatDiffersAndPrunesOnlyIfItIsTold(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	same := s.put("app/same", "1")
	s.put("app/other", "1")
	s.put("app/gone", "1")
	s.put("app/gone/too", "1")
	s.put("else", "1")
	file := filepath.Join(t.TempDir(), "app.yaml")
	if err := os.WriteFile(file, []byte("same: 1\nother: 2\nnew: {a: 3, b: 4}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	writes := "put     app/new/a\nput     app/new/b\nput     app/other\n"
	prunes := "delete  app/gone/too\ndelete  app/gone\n"
	s.wants(0, writes+prunes, "import", "app", file, "--prune", "--dry-run")
	if got := s.stored(""); got != "app/gone=1 app/gone/too=1 app/other=1 app/same=1 else=1" {
		t.Error(got)
	}
	s.wants(0, writes, "import", "app", file)
	s.wants(0, prunes, "import", "app", file, "--prune")
	if got := s.stored(""); got != "app/new/a=3 app/new/b=4 app/other=2 app/same=1 else=1" {
		t.Error(got)
	}
	if now, err := s.config.Get(t.Context(), "app/same"); err != nil || now.Revision != same.Revision {
		t.Error(now, err)
	}
	s.put("app/new", "1")
	s.wants(64, "sidekeeper: app/new cannot be deleted while app/new/a lies below it: give it a value, or omit --prune\n",
		"import", "app", file, "--prune")
	s.wants(0, `{"dryRun":true,"steps":[]}`+"\n", "import", "app", file, "--dry-run", "-o", "json")
}

func TestLargeImportsAreSplitIntoCommits(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	wanted := map[string][]byte{"huge": []byte(strings.Repeat("h", configsync.MaxValueBytes))}
	for i := range 250 {
		wanted[fmt.Sprintf("small/%03d", i)] = []byte("x")
	}
	for i := range 3 {
		wanted[fmt.Sprintf("large-%d", i)] = []byte(strings.Repeat("l", 400_000))
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "small"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, value := range wanted {
		if err := os.WriteFile(filepath.Join(folder, name), value, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, code := s.runs("", "import", "", folder)
	if lines := strings.Count(stdout, "\n"); code != 0 || lines != len(wanted) {
		t.Fatalf("%d %d %s", code, lines, stderr)
	}
	stored, err := configsync.Collect(s.config.List(t.Context(), ""))
	read := map[string][]byte{}
	for _, entry := range stored {
		read[entry.Key] = entry.Value
	}
	if err != nil || !maps.EqualFunc(wanted, read, bytes.Equal) {
		t.Errorf("%v, %d keys", err, len(read))
	}
}

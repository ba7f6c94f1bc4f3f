package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// A configScene is a sidecar with a configuration, and the commands for it.
type configScene struct {
	t       *testing.T
	sidecar *sidekeepertest.Sidecar
	config  *sidekeeper.Config
}

func newConfigScene(t *testing.T) *configScene {
	t.Helper()
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{SessionTimeout: 20 * time.Second})
	return &configScene{t: t, sidecar: sidecar, config: sidecar.Client().Config()}
}

// runs runs `sidekeeper config` to its end.
func (s *configScene) runs(stdin string, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	var out, err bytes.Buffer
	address := s.sidecar.Address()
	all := append([]string{"--address", address, "--operator-address", address, "config"}, args...)
	code = run(s.t.Context(), all, strings.NewReader(stdin), &out, &err)
	return out.String(), err.String(), code
}

// wants compares all that a person sees.
func (s *configScene) wants(code int, want string, args ...string) {
	s.t.Helper()
	stdout, stderr, got := s.runs("", args...)
	if seen := stdout + stderr; got != code || seen != want {
		s.t.Errorf("%s: exit code %d, want %d\n%q\nwant\n%q", strings.Join(args, " "), got, code, seen, want)
	}
}

func (s *configScene) put(key, value string) sidekeeper.Entry {
	s.t.Helper()
	entry, err := s.config.Put(s.t.Context(), key, []byte(value))
	if err != nil {
		s.t.Fatal(err)
	}
	return entry
}

func (s *configScene) remove(key string) {
	s.t.Helper()
	if err := s.config.Delete(s.t.Context(), key); err != nil {
		s.t.Error(err)
	}
}

// fifo is a pipe with a name, through which a script and a test wait for each other.
func fifo(t *testing.T, name string) string {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), name)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	return pipe
}

// stored shows the keys of a prefix with their values.
func (s *configScene) stored(prefix string) string {
	s.t.Helper()
	var all []string
	for entry, err := range s.config.List(s.t.Context(), prefix) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, entry.Key+"="+string(entry.Value))
	}
	return strings.Join(all, " ")
}

func TestValuesPassByteForByte(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, every, 0o600); err != nil {
		t.Fatal(err)
	}
	for before, args := range [][]string{{"--file", file}, {"-"}, {"--file", "-"}} {
		stdout, stderr, code := s.runs(string(every), append([]string{"put", "app/blob"}, args...)...)
		if want := "app/blob has version " + strconv.Itoa(before+1) + "\n"; code != 0 || stdout+stderr != want {
			t.Errorf("%v: %d %q", args, code, stdout+stderr)
		}
		s.wants(0, string(every), "get", "app/blob")
		s.wants(0, string(every), "get", "app/blob", "--linearizable")
	}
	s.wants(0, "app/empty has version 1\n", "put", "app/empty", "")
	s.wants(0, "", "get", "app/empty")
	s.wants(1, "sidekeeper: no such key: app/none (KEY_NOT_FOUND)\n", "get", "app/none")
}

func TestEntriesAreShownAsJSONWithTextWhereThereIsSome(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	s.put("app/text", "héllo\n")
	s.put("app/bytes", "\x00\xff")
	numbers := regexp.MustCompile(`evision":"\d+"`)
	for key, want := range map[string]string{
		"app/text":  `{"key":"app/text","text":"héllo\n","version":1,"revision":"N","createdRevision":"N"}`,
		"app/bytes": `{"key":"app/bytes","value":"AP8=","version":1,"revision":"N","createdRevision":"N"}`,
	} {
		stdout, _, code := s.runs("", "get", key, "-o", "json")
		if got := numbers.ReplaceAllString(stdout, `evision":"N"`); code != 0 || got != want+"\n" {
			t.Errorf("%d %s", code, got)
		}
	}
	stdout, _, _ := s.runs("", "ls", "app/", "-o", "json")
	if got := strings.Count(stdout, `"key":"app/`); got != 2 || !strings.HasSuffix(stdout, `"nextPageToken":""}`+"\n") {
		t.Error(stdout)
	}
}

func TestLsShowsAGlanceOfEachValue(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	s.put("app/db", "primary")
	s.put("app/db", "secondary")
	s.put("app/long", strings.Repeat("x", 50))
	s.put("app/logo", "\x00")
	s.put("other", "")
	stdout, _, code := s.runs("", "ls", "app")
	got := regexp.MustCompile(`\d{3,}`).ReplaceAllString(regexp.MustCompile(` +`).ReplaceAllString(stdout, " "), "N")
	want := regexp.MustCompile(`(?s)^KEY VERSION REVISION BYTES VALUE\napp/db 2 \d+ 9 secondary\n` +
		`app/logo 1 \d+ 1 \(1 bytes\)\napp/long 1 \d+ 50 x{40}…\n$`)
	if code != 0 || !want.MatchString(regexp.MustCompile(` +`).ReplaceAllString(stdout, " ")) {
		t.Errorf("%d %s", code, got)
	}
}

func TestConditionsThatAreNotMetWriteNothing(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	s.wants(0, "limit has version 1\n", "put", "limit", "1", "--if-missing")
	s.wants(0, "limit has version 2\n", "put", "limit", "2", "--if-version", "1")
	s.wants(0, "limit has version 3\n", "put", "limit", "3", "--if-exists")
	for _, args := range [][]string{
		{"put", "limit", "4", "--if-missing"},
		{"put", "limit", "4", "--if-version", "1"},
		{"put", "other", "4", "--if-exists"},
		{"rm", "limit", "--if-version", "0"},
	} {
		if stdout, stderr, code := s.runs("", args...); code != 75 || !strings.Contains(stderr, "(PRECONDITION_FAILED)") {
			t.Errorf("%v: %d %s %s", args, code, stdout, stderr)
		}
	}
	s.wants(75, "sidekeeper: the key does not meet the precondition: other does not exist (PRECONDITION_FAILED)\n",
		"put", "other", "4", "--if-version", "1")
	if got := s.stored(""); got != "limit=3" {
		t.Error(got)
	}
	s.wants(0, "keys deleted: 1\n", "rm", "limit", "--if-version", "3")
}

func TestRmDeletesOneKeyOrAsAnOperatorAllBelow(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	for _, key := range []string{"a", "a/b", "a/b/c", "ab"} {
		s.put(key, "")
	}
	stdout, stderr, code := s.runs("", "rm", "a")
	if code != 1 || !strings.Contains(stderr, "(KEY_HAS_CHILDREN)") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	s.wants(0, `{"deleted":1}`+"\n", "rm", "a/b/c", "-o", "json")
	s.wants(0, "keys deleted: 2\n", "rm", "-r", "a")
	if got := s.stored(""); got != "ab=" {
		t.Error(got)
	}
}

func TestShellsCompleteKeys(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	for _, key := range []string{"app/db/host", "app/db/port", "app/dns", "other"} {
		s.put(key, "")
	}
	for begun, want := range map[string]string{
		"":         "app/db/host\napp/db/port\napp/dns\nother\n:4\n",
		"app/d":    "app/db/host\napp/db/port\napp/dns\n:4\n",
		"app/db/h": "app/db/host\n:4\n",
	} {
		stdout, _, code := output(t, "__complete", "--address", s.sidecar.Address(), "config", "get", begun)
		if code != 0 || stdout != want {
			t.Errorf("%q: %d %q", begun, code, stdout)
		}
	}
	for _, command := range []string{"sync", "import"} {
		stdout, _, code := output(t, "__complete", "--address", s.sidecar.Address(), "config", command, "other", "")
		if code != 0 || stdout != ":0\n" { // which leaves it to the shell
			t.Errorf("%s: %d %q", command, code, stdout)
		}
	}
}

func TestWrongUseOfConfigIsToldInOneLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file.yaml")
	if err := os.WriteFile(file, []byte("a: [1]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, said := range map[string]string{
		"put a":                            "missing value: give one, or - for standard input, or --file FILE",
		"put a b --file f":                 "missing value: give one, or - for standard input, or --file FILE",
		"put a --file /nonexistent":        "open /nonexistent: no such file or directory",
		"put a b --if-missing --if-exists": "conflicting conditions: use one of --if-version, --if-missing and --if-exists",
		"put a b --if-version -o json":     `--if-version is "-o": a whole number from 0`,
		"rm -r a --if-version 1":           "a condition applies to one key, not with --recursive",
		"watch a b":                        "expected one prefix, or several keys with --exact",
		"watch --exact":                    "--exact: missing keys",
		"watch a --exec=":                  "--exec: missing command",
		"export a -o json":                 "export writes YAML, or with --to files; for JSON there is `config ls --output json`",
		"export a --to b --format yaml":    "export writes YAML, or with --to files; for JSON there is `config ls --output json`",
		"import a /nonexistent":            "/nonexistent: no such file or directory",
		"import a " + file:                 file + `: line 1: key "a": a value is a string, !!binary or a mapping`,
		"import a..b// " + folder:          `key "a..b//file.yaml": a segment is 1 to 64 letters, digits, . _ or -, and not . or .. alone`,
		"sync a " + folder:                 folder + " holds file.yaml, which sync did not create: choose an empty folder",
		"sync a b --signal 1 --exec c":     "--signal and --exec exclude each other",
		"sync a b --retry 1s":              "--retry: only with --exec, and not with --once",
		"sync a b --exec c --retry -1s":    "--retry -1s: expected a time, such as 10s",
		"sync a b --signal 1:NONE":         "--signal 1:NONE: expected PID:SIGNAL such as 4711:SIGHUP, or the path of a file with the PID",
		"sync a b --signal -1:HUP":         `--signal: "-1" is not a process ID`,
		"sync a b --mode 999":              `--mode is "999": permissions in octal, such as 0660`,
		"sync a b --mode 0200":             "--mode 0200: the owner must be able to read and write the files, as with 0600",
		"sync a":                           "usage: sidekeeper config sync PREFIX FOLDER",
	} {
		stdout, stderr, code := output(t, append([]string{"--address", "/nonexistent", "config"}, strings.Fields(args)...)...)
		if code != 64 || stdout != "" || stderr != "sidekeeper: "+said+"\n" {
			t.Errorf("%s: %d %q %q", args, code, stdout, stderr)
		}
	}
}

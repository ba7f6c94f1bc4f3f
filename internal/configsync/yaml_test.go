package configsync

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestYAMLShowsKeysAsMappingsAndBytesAsBinary(t *testing.T) {
	var out bytes.Buffer
	err := entries{
		"": []byte("of the prefix"), "db": []byte("primary"), "db/host": []byte("db1"), "db/port": []byte("5432"),
		"db-old": []byte("true"), "logo": {0, 255}, "motd": []byte("two\nlines\n"), "empty": {}, "a/b/c": []byte("deep"),
	}.writeYAML(&out)
	want := `"": of the prefix
a:
  b:
    c: deep
db:
  "": primary
  host: db1
  port: "5432"
db-old: "true"
empty: ""
logo: !!binary AP8=
motd: |
  two
  lines
`
	if diff := cmp.Diff(want, out.String()); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// What is written is read to the byte, whatever it is.
func TestYAMLAndFilesGiveBackWhatWasWrittenToThem(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		written := randomEntries(random)
		var out bytes.Buffer
		if err := written.writeYAML(&out); err != nil {
			t.Fatal(err)
		}
		read, err := readYAML(&out)
		if diff := cmp.Diff(written, read); diff != "" || err != nil {
			t.Fatalf("YAML: %v %s", err, diff)
		}
		folder := t.TempDir()
		if err := written.files().writeFiles(folder, 0o600); err != nil {
			t.Fatal(err)
		}
		read, err = readEntries(folder)
		if diff := cmp.Diff(written, read); diff != "" || err != nil {
			t.Fatalf("files: %v %s", err, diff)
		}
	}
}

func randomEntries(random *rand.Rand) entries {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	made := entries{}
	for range random.IntN(12) {
		name := ""
		for range random.IntN(4) {
			name = keyBelow(name, pick("a", "b", "a-b", "..data", "...", "..sidekeeper", "-", "1.5", "true", "null", "A_Z"))
		}
		value := ""
		for range random.IntN(6) {
			value += pick("word", " ", "\n", "\t", "- ", "#", ": ", "'", `"`, "\x00", "\xff", "\u00e4", "\r", "|", "null", "12", "~", "\u2028",
				"\ufeff", "!!binary ", "---\n", "%", "{", "\u200b")
		}
		made[name] = []byte(value)
	}
	return made
}

func TestYAMLIsReadAsPeopleWriteIt(t *testing.T) {
	read, err := readYAML(strings.NewReader(`
db/host: db1        # segments may be joined
db: {port: 5432, tls: yes, "": primary}
ratio: 1.50
since: 2026-11-21
text: >
  folded
  lines
logo: !!binary |
  AA
  D/
`))
	want := entries{
		"db/host": []byte("db1"), "db/port": []byte("5432"), "db/tls": []byte("yes"), "db": []byte("primary"),
		"ratio": []byte("1.50"), "since": []byte("2026-11-21"), "text": []byte("folded lines\n"), "logo": {0, 0, 255},
	}
	if diff := cmp.Diff(want, read); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestYAMLThatMeansNothingIsRefusedWithItsLine(t *testing.T) {
	for text, said := range map[string]string{
		"":                        "empty document",
		"a: 1\n---\nb: 2\n":       "more than one document",
		"- a\n":                   "line 1: at the top there must be a mapping",
		"a: 1\nb: [1]\n":          `line 2: key "b": a value is a string`,
		"a:\n":                    `line 1: key "a" has no value; an empty one is written ""`,
		"a/b: 1\na:\n  b: 2\n":    `line 3: key "a/b" occurs twice`,
		"a: &x 1\nb: *x\n":        `line 2: key "b": a value is a string`,
		"a: !!binary '*'\n":       `line 1: key "a": illegal base64`,
		"a/: 1\n":                 "line 1: a key is segments joined by /",
		"a: {b: 1}\n<<: {c: 1}\n": "line 2: a key is segments joined by /",
		"a: [":                    "line 1: did not find expected node content",
	} {
		if _, err := readYAML(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFoldersThatMeanNothingAreRefused(t *testing.T) {
	for what, put := range map[string]func(folder string) error{
		"neither a file nor a folder": func(folder string) error {
			return os.Symlink(".", filepath.Join(folder, "loop"))
		},
		"path escapes from parent": func(folder string) error {
			return os.Symlink("/etc/hostname", filepath.Join(folder, "host"))
		},
		"more than 1000000": func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "large"), bytes.Repeat([]byte("x"), MaxValueBytes+1), 0o600)
		},
	} {
		folder := t.TempDir()
		if err := put(folder); err != nil {
			t.Fatal(err)
		}
		if _, err := readEntries(folder); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestEntriesAreCheckedBeforeAnythingIsWritten(t *testing.T) {
	for key, said := range map[string]string{
		"":                              "1 to 200 bytes",
		strings.Repeat("a/", 100) + "b": "1 to 200 bytes",
		"a//b":                          "a segment is",
		"a/../b":                        "a segment is",
		"a b":                           "a segment is",
		strings.Repeat("a", 65):         "a segment is",
		"zookeeper/a":                   "cannot be zookeeper",
	} {
		if err := checkEntry(key, nil); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if err := checkEntry("a", make([]byte, MaxValueBytes+1)); err == nil || !strings.Contains(err.Error(), strconv.Itoa(MaxValueBytes)) {
		t.Error(err)
	}
	if err := checkEntry("zookeeper-b/..c/D_1", make([]byte, MaxValueBytes)); err != nil {
		t.Error(err)
	}
}

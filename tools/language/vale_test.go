package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// What follows this word in a test is a sentence of 24 words and more.
const twentyFour = "One two three four five six seven eight nine ten one two three four five six seven eight nine ten one two three four "

// Texts, and at which lines Vale finds what in them.
var texts = map[string]struct {
	text  string
	found findings
}{
	"long.md": {strings.ReplaceAll(`A short one. LONG five.

LONG `+"`code that counts once`"+` — six.

* LONG five six.

| LONG five six. |
|---|
`, "LONG ", twentyFour), findings{{"long.md", "LongSentence"}: {3, 5, 7}}},
	"hidden.md": {`Whoever waits.
It is open to nobody, but
for one. Who has it waits.

The holder
who waits shows who leads; who asks
is told. Who leads?

Nobody: ` + "`nobody`" + `.
`, findings{{"hidden.md", "HiddenActor"}: {1, 2, 2, 3, 6, 9}}},
	"a.proto": {`// A comment, and not
// what was told.
message A {
  // ` + twentyFour + `
  // five six.
  string b = 1; // also if it is not set
}
`, findings{{"a.proto", "HiddenActor"}: {2, 6}, {"a.proto", "LongSentence"}: {4}}},
	"a.txt": {`Exits with
  64  nobody knows

somebody
`, findings{{"a.txt", "HiddenActor"}: {4}}},
}

func TestValeFinds(t *testing.T) {
	t.Parallel()
	for name, c := range texts {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := vale(t.Context(), "../..", []string{file}, map[string]source{file: {file: name}})
		if err != nil || !reflect.DeepEqual(found, c.found) {
			t.Errorf("%s: found %v, %v; want %v", name, found, err, c.found)
		}
	}
}

func TestFindingsAreInTheFilesOfTheRepository(t *testing.T) {
	t.Parallel()
	root := repository(t)
	for name, text := range map[string]string{
		"go.mod":            "module a\n",
		"README.md":         "It waits for\nnobody.\n",
		"service/a.go":      "package a\n\nvar err = errors.New(\"nobody waits\")\n",
		"service/a_test.go": "package a\n\nvar err = errors.New(\"nobody waits\")\n",
		"ignored.md":        "Nobody.\n",
		".gitignore":        "ignored.md\n",
	} {
		put(t, filepath.Join(root, name), text)
	}
	for _, name := range []string{".vale.ini", "tools"} {
		whole, err := filepath.Abs(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(whole, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := findingsIn(t.Context(), root)
	if want := (findings{{"README.md", "HiddenActor"}: {2}, {"service/a.go", "HiddenActor"}: {3}}); err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("found %v, %v; want %v", found, err, want)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

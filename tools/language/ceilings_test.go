package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	guide  = place{"docs/guide.md", "LongSentence"}
	readme = place{"README.md", "HiddenActor"}
)

func TestAFileMayHaveWhatItsCeilingSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		is    string
		most  ceilings
		found findings
		says  string // nothing if it passes
	}{
		{"as many as its ceiling", ceilings{guide: 2}, findings{guide: {3, 9}}, ""},
		{"more", ceilings{guide: 1}, findings{guide: {3, 9}}, "docs/guide.md: LongSentence: 2 findings, and at most 1 are allowed: lines [3 9]"},
		{"fewer", ceilings{guide: 2}, findings{guide: {3}}, "docs/guide.md: LongSentence: lower the ceiling from 2 to 1: make fix-language"},
		{"none any more", ceilings{guide: 2}, findings{}, "docs/guide.md: LongSentence: lower the ceiling from 2 to 0: make fix-language"},
		{"a new file", ceilings{}, findings{readme: {7}}, "README.md: HiddenActor: 1 findings, and at most 0 are allowed: lines [7]"},
		{
			"another rule",
			ceilings{guide: 1},
			findings{guide: {1}, {guide.file, readme.rule}: {4}},
			"docs/guide.md: HiddenActor: 1 findings, and at most 0 are allowed: lines [4]",
		},
	} {
		if got := textOf(check("", c.most, c.found)); got != c.says {
			t.Errorf("%s: got %q, want %q", c.is, got, c.says)
		}
	}
}

func TestFixLowersCeilingsAndRaisesNone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ceilings.tsv")
	gone := place{"docs/gone.md", "LongSentence"}
	err := fix(file, ceilings{guide: 3, readme: 1, gone: 2}, findings{guide: {5}, readme: {1, 2}})
	if got := textOf(err); got != "README.md: HiddenActor: 2 findings, and at most 1 are allowed: lines [1 2]" {
		t.Error(got)
	}
	written, err := readCeilings(file)
	if want := (ceilings{guide: 1, readme: 1}); err != nil || !maps.Equal(written, want) {
		t.Errorf("written %v, %v; want %v", written, err, want)
	}
}

func TestARowThatIsNoCeilingIsAnError(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ceilings.tsv")
	if err := os.WriteFile(file, []byte("README.md\tHiddenActor\tmany\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readCeilings(file); err == nil || !strings.Contains(err.Error(), `"README.md\tHiddenActor\tmany\n"`) {
		t.Error(err)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

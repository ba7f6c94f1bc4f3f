package peers

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// languages are the endings of the files whose lines the document shows.
var languages = map[string]string{"java": ".java", "python": ".py", "go": "_test.go"}

func TestTheLinesOfTheDocumentAreThoseThatTheTestsRun(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(document))
	must(t, err)
	shown := 0
	for i, part := range strings.Split(string(text), "```") {
		language, lines, _ := strings.Cut(part, "\n")
		ending, known := languages[language]
		if i%2 == 0 || language == "sh" || language == "" {
			continue
		}
		if !known {
			t.Fatalf("%s shows lines of %q", document, language)
		}
		shown++
		if !isRun(t, bare(lines), ending) {
			t.Errorf("no file that ends in %s has\n%s", ending, lines)
		}
	}
	if shown < len(languages) {
		t.Errorf("%s shows lines %d times only", document, shown)
	}
}

// isRun says whether a file of these tests with that ending has these lines, one right after the other.
func isRun(t *testing.T, lines, ending string) (found bool) {
	t.Helper()
	must(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		text, err := os.ReadFile(path)
		found = found || strings.Contains("\n"+bare(string(text)), "\n"+lines)
		return err
	}))
	return found
}

// bare is a text without what lines begin and end with, since a document indents otherwise.
func bare(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		lines.WriteString(strings.TrimSpace(line) + "\n")
	}
	return lines.String()
}

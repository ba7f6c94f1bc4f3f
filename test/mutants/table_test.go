package mutants

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// That it compiles is seen when it is run: see TestEveryMutantIsCaught.
func TestEveryMutantHasAPatchThatFitsOrAReasonWhyNot(t *testing.T) {
	known := map[string]bool{}
	for _, m := range Table {
		if m.Absent != "" {
			continue
		}
		known[m.ID+".patch"] = true
		if _, err := m.Overlay(t.TempDir()); err != nil {
			t.Error(err)
		}
	}
	files, err := fs.Glob(patches, "testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[path.Base(file)] {
			t.Errorf("%s is no mutant's", file)
		}
	}
}

func TestEveryMutantHasANameOfItsOwnAndSomebodyWhoCatchesIt(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Table {
		if seen[m.ID] || m.Bug == "" || (m.Absent == "") == (len(m.Catchers) == 0) {
			t.Errorf("%+v", m)
		}
		seen[m.ID] = true
	}
}

var update = flag.Bool("update", false, "write the table of docs/mutants.md anew instead of comparing it")

// The document shows the table as it is.
func TestTheDocumentShowsAllMutants(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "mutants.md")
	document, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, shown, found := strings.Cut(string(document), "\n|")
	shown, after, ends := strings.Cut(shown, "\n\n")
	if !found || !ends {
		t.Fatal("docs/mutants.md has no table")
	}
	want := inMarkdown()
	if *update {
		if err := os.WriteFile(file, []byte(before+"\n"+want+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if "|"+shown+"\n" != want {
		t.Error("docs/mutants.md does not show the table: go test ./test/mutants -run Document -update writes it")
	}
}

func inMarkdown() string {
	lines := "| | what is wrong | the test that fails | within |\n|---|---|---|---|\n"
	for _, m := range Table {
		if m.Absent != "" {
			lines += fmt.Sprintf("| %s | %s | none: %s | |\n", m.ID, m.Bug, m.Absent)
			continue
		}
		var who, within []string
		for _, c := range m.Catchers {
			who = append(who, fmt.Sprintf("%#q in %#q", c.Test, c.Package))
			within = append(within, c.within())
		}
		lines += fmt.Sprintf("| %s | %s | %s | %s |\n", m.ID, m.Bug, strings.Join(who, "<br>"), strings.Join(within, "<br>"))
	}
	return lines
}

func (c Catcher) within() string {
	if c.Schedules > 0 {
		return fmt.Sprintf("%d random schedules", c.Schedules)
	}
	return "one run"
}

package documents

import (
	"html"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var copies = regexp.MustCompile(`data-copy="([^"]*)"`)

// What browsers are asked to load, `make site` itself examines.
func TestTheSiteHasAHomeOfItsOwnAndCopiesCommandsAlone(t *testing.T) {
	t.Parallel()
	if output, err := exec.CommandContext(t.Context(), "../../tools/site/build").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	page := func(name string) string {
		text, err := os.ReadFile("../../bin/site/" + name)
		must(t, err)
		return string(text)
	}
	home := page("index.html")
	for _, shown := range []string{"you-write-an-application", "you-run-it", "you-evaluate-it", "docs/first-lock-python.html"} {
		if !strings.Contains(home, `"`+shown+`"`) {
			t.Errorf("the site's home has no %s", shown)
		}
	}
	for _, document := range documents(t) {
		if document.path != "docs/quickstart.md" {
			continue
		}
		var copied, typed []string
		for _, match := range copies.FindAllStringSubmatch(page("docs/quickstart.html"), -1) {
			copied = append(copied, html.UnescapeString(match[1]))
		}
		for _, block := range blocksOf(t, document.path, document.lines) {
			if block.kind == "console" {
				typed = append(typed, typedIn(block.steps(t, document.path)))
			}
		}
		if !slices.Equal(copied, typed) {
			t.Errorf("copied is\n%s\nnot\n%s", strings.Join(copied, "\n---\n"), strings.Join(typed, "\n---\n"))
		}
	}
}

// typedIn are the commands that are typed, without keys and what goes on.
func typedIn(steps []step) string {
	var lines []string
	for _, step := range steps {
		if step.command != interrupt && step.command != goesOn {
			command, _, _ := strings.Cut(step.command, "  #")
			lines = append(lines, command)
		}
	}
	return strings.Join(lines, "\n")
}

package house

import (
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)[`/]")
	definedTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w+)\(`)
)

func TestTestsThatDocumentsNameExist(t *testing.T) {
	t.Parallel()
	defined := map[string]bool{}
	for _, source := range files(t, "_test.go") {
		for _, match := range definedTest.FindAllStringSubmatch(source.text, -1) {
			defined[match[1]] = true
		}
	}
	named := 0
	for _, document := range files(t, ".md") {
		for _, match := range namedTest.FindAllStringSubmatch(document.text, -1) {
			named++
			if !defined[match[1]] {
				t.Errorf("%s names %s, which does not exist", document.path, match[1])
			}
		}
	}
	if named == 0 || strings.TrimSpace(read(t, "docs/guarantees.md")) == "" {
		t.Error("no document names a test")
	}
}

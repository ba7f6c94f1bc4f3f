package house

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	makeTarget = regexp.MustCompile("(?m)(?:^ {4}|`|^[$] )make ([a-z][a-z-]*)")
	target     = regexp.MustCompile(`(?m)^([a-z][a-z-]*):.*## `)
	homeOfOne  = regexp.MustCompile(`(?:^|[\s"'=(:` + "`" + `])/(?:root|work|home/\w+|Users/\w+)/`)
)

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()

	for _, document := range files(t, ".md") {
		for _, match := range link.FindAllStringSubmatch(document.text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}

			name, anchor, _ := strings.Cut(match[1], "#")

			where := document.path
			if name != "" {
				where = path.Join(path.Dir(document.path), name)
			}

			switch {
			case !exists(where):
				t.Errorf("%s links to %s, which does not exist", document.path, match[1])
			case anchor != "" && !slices.Contains(anchors(read(t, where)), anchor):
				t.Errorf("%s links to %s, which has no such heading", document.path, match[1])
			}
		}
	}
}

// anchors are the names by which the headings of a document can be linked to.
func anchors(document string) []string {
	var names []string

	for _, match := range heading.FindAllStringSubmatch(document, -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, match[1]))
	}

	return names
}

func TestDocumentsNameOnlyMakeTargetsThatExist(t *testing.T) {
	t.Parallel()

	var targets []string
	for _, match := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets = append(targets, match[1])
	}

	for _, document := range files(t, ".md") {
		for _, match := range makeTarget.FindAllStringSubmatch(document.text, -1) {
			if !slices.Contains(targets, match[1]) {
				t.Errorf("%s tells of `make %s`; the Makefile explains only %q", document.path, match[1], targets)
			}
		}
	}
}

func TestNothingNamesAFolderOfOnePersonsMachine(t *testing.T) {
	t.Parallel()

	for _, file := range files(t) {
		if found := homeOfOne.FindString(file.text); found != "" {
			t.Errorf("%s speaks of %q", file.path, found)
		}
	}
}

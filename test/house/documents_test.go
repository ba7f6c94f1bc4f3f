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
	otherLink  = regexp.MustCompile(`(?m)(?:^\[[^\]]+\]: +|\b(?:href|src)=")([^\s"]+)`)
	fenced     = regexp.MustCompile("(?ms)^ *```.*?\n *```$")
	heading    = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	makeTarget = regexp.MustCompile("(?m)(?:^ {4}|`|^[$] )make ([a-z][a-z-]*)")
	target     = regexp.MustCompile(`(?m)^([a-z][a-z-]*):.*## `)
	homeOfOne  = regexp.MustCompile(`(?:^|[\s"'=(:` + "`" + `])/(?:root|work|home/\w+|Users/\w+)/`)
)

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()

	for _, document := range files(t, ".md") {
		for _, to := range linksOf(document) {
			name, anchor, _ := strings.Cut(to, "#")

			where := document.path
			if name != "" {
				where = path.Join(path.Dir(document.path), name)
			}

			switch {
			case !exists(where):
				t.Errorf("%s links to %s, which does not exist", document.path, to)
			case anchor != "" && !slices.Contains(anchors(read(t, where)), anchor):
				t.Errorf("%s links to %s, which has no such heading", document.path, to)
			}
		}
	}
}

// linksOf are the places in the repository that a document links to, in whatever form.
func linksOf(document file) []string {
	var found []string

	text := fenced.ReplaceAllString(document.text, "")
	for _, match := range slices.Concat(link.FindAllStringSubmatch(text, -1), otherLink.FindAllStringSubmatch(text, -1)) {
		if !strings.Contains(match[1], "://") {
			found = append(found, match[1])
		}
	}

	return found
}

func TestEveryDocumentCanBeReachedFromTheIndex(t *testing.T) {
	t.Parallel()

	reached := map[string]bool{}

	var follow func(name string)

	follow = func(name string) {
		if reached[name] || path.Ext(name) != ".md" || !exists(name) {
			return
		}

		reached[name] = true
		for _, to := range linksOf(file{path: name, text: read(t, name)}) {
			to, _, _ = strings.Cut(to, "#")
			follow(path.Join(path.Dir(name), to))
		}
	}
	follow("docs/README.md")

	for _, document := range files(t, ".md") {
		if !reached[document.path] && !strings.HasPrefix(document.path, "clients/") {
			t.Errorf("no link leads from docs/README.md to %s", document.path)
		}
	}
}

// anchors are the names by which the headings of a document can be linked to.
func anchors(document string) []string {
	var names []string

	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(document, ""), -1) {
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

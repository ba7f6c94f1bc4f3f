package main

import (
	"path"
	"regexp"
	"strings"
)

// Documents that are written from protos and from commands, whose texts are read there.
var generated = regexp.MustCompile(`^docs/(api/|commands\.md$)`)

// isProse says of which files all is prose, or all comments.
func isProse(name string) bool {
	switch path.Ext(name) {
	case ".md":
		return !generated.MatchString(name)
	case ".proto":
		return strings.HasPrefix(name, "proto/")
	case ".txt":
		return strings.HasPrefix(name, "cmd/sidekeeper/help/")
	}
	return false
}

// The folders of the code that users run, and what in them is generated or a test.
var (
	shippedCode = regexp.MustCompile(
		`^(cmd|service|internal|recipes|clients/go|clients/(python|typescript)/src|clients/java/(.+/)?src/main)/.*\.(go|py|ts|java)$`)
	notShipped = regexp.MustCompile(`_test\.go$|_pb2|/gen/|^clients/go/scripted/`)
)

// isShippedCode says which files may hold the texts of errors, of settings and of commands.
func isShippedCode(name string) bool {
	return shippedCode.MatchString(name) && !notShipped.MatchString(name)
}

// What may hold a quote: comments, blocks of text (in Python, documentation), and strings. The group has the strings.
const quoted = `|"""(?s:.*?)"""|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|` + "`[^`]*`)"

var (
	inPython = regexp.MustCompile(`#.*` + quoted)
	inOthers = regexp.MustCompile(`//.*|/\*(?s:.*?)\*/` + quoted)

	// What stands between two strings that are one text: nothing, a plus, or the letter before a string of Python.
	joint   = regexp.MustCompile(`^[\s+]*[bfr]?$`)
	newline = regexp.MustCompile(`\\n|\n`)
	escape  = regexp.MustCompile(`\\(.)`)
)

// What begins and ends a comment, and each of its lines.
var commentMark = regexp.MustCompile(`(?m)^[ \t]*(//+|/\*+|#+|\*/|\*)?|\*/$`)

// commentsOf are the comments of a source as Markdown, each line where it stands in the source.
func commentsOf(name, source string) string {
	var comments strings.Builder
	line := 1
	for _, at := range tokensOf(name).FindAllStringSubmatchIndex(source, -1) {
		if at[2] >= 0 {
			continue
		}
		begins := 1 + strings.Count(source[:at[0]], "\n")
		comments.WriteString(strings.Repeat("\n", begins-line))
		text := commentMark.ReplaceAllString(strings.Trim(source[at[0]:at[1]], `"`), "")
		comments.WriteString(text)
		line = begins + strings.Count(text, "\n")
	}
	comments.WriteByte('\n')
	return comments.String()
}

// tokensOf finds comments and strings in the language of a source.
func tokensOf(name string) *regexp.Regexp {
	if path.Ext(name) == ".py" {
		return inPython
	}
	return inOthers
}

// textsOf are the strings of a source that have more than one word, as paragraphs of Markdown. The numbers say for each line of these
// at which line of the source its string begins.
func textsOf(name, source string) (string, []int) {
	var paragraphs strings.Builder
	var lines []int
	var text string // of the strings since begin
	begin, end := 0, 0
	finish := func() {
		for part := range strings.SplitSeq(newline.ReplaceAllString(text, "\n"), "\n") {
			if part = strings.TrimSpace(escape.ReplaceAllString(part, "$1")); strings.Contains(part, " ") {
				line := 1 + strings.Count(source[:begin], "\n")
				paragraphs.WriteString(part + "\n\n")
				lines = append(lines, line, line)
			}
		}
		text = ""
	}
	for _, at := range tokensOf(name).FindAllStringSubmatchIndex(source, -1) {
		if at[2] < 0 {
			continue
		}
		if text == "" || !joint.MatchString(source[end:at[2]]) {
			finish()
			begin = at[2]
		}
		text += source[at[2]+1 : at[3]-1]
		end = at[3]
	}
	finish()
	return paragraphs.String(), lines
}

package main

import (
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A description is a comment taken apart.
type description struct {
	paragraphs []string
	outcomes   []outcome // of an rpc
}

// An outcome is one line of an rpc's comment: `CODE (REASON, REASON): when`.
type outcome struct {
	code    string
	reasons []string
	when    string
}

var (
	outcomeBegins = regexp.MustCompile(`^(OK: |[A-Z_]+ \([A-Z_])`)
	outcomeForm   = regexp.MustCompile(`^([A-Z_]+)(?: \(([A-Z_, ]+)\))?: (.+)$`)
)

// describe takes the comment of something apart: paragraphs, and lines set in from them, which are outcomes.
func describe(d protoreflect.Descriptor) (description, error) {
	comment := d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments
	described, err := parseComment(comment)
	if err == nil && len(described.paragraphs) == 0 {
		err = fmt.Errorf("%s has no comment", d.FullName())
	}
	return described, err
}

func parseComment(comment string) (d description, err error) {
	var paragraph, lines []string
	end := func() {
		if len(paragraph) > 0 {
			d.paragraphs = append(d.paragraphs, strings.Join(paragraph, " "))
		}
		paragraph = nil
	}
	for line := range strings.Lines(comment) {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
			end()
		case !strings.HasPrefix(line, "  "):
			paragraph = append(paragraph, text)
		case outcomeBegins.MatchString(text):
			lines = append(lines, text)
		case len(lines) == 0:
			return d, fmt.Errorf("no outcome begins with %q", text)
		default:
			lines[len(lines)-1] += " " + text
		}
	}
	end()
	for _, line := range lines {
		parsed := outcomeForm.FindStringSubmatch(line)
		if parsed == nil {
			return d, fmt.Errorf("no outcome in the form CODE (REASON): when: %q", line)
		}
		d.outcomes = append(d.outcomes, outcome{code: parsed[1], reasons: splitWords(parsed[2]), when: parsed[3]})
	}
	return d, nil
}

func splitWords(list string) (words []string) {
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// text is the comment of what has no outcomes, in one paragraph.
func (d description) text() string { return strings.Join(d.paragraphs, " ") }

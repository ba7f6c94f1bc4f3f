package main

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// A list is a flag's value: elements between commas. Blanks around an element do not count. The first time that it is set replaces the
// default, and each further time adds to it.
type list struct {
	elements *[]string
	given    bool
	words    bool // an element has no blanks within it; paths may
}

// ofWords has elements with blanks within them refused.
func (l *list) ofWords() *list {
	l.words = true
	return l
}

// listOf is the value that fills these elements, by default with those given.
func listOf(elements *[]string, byDefault ...string) *list {
	*elements = byDefault
	return &list{elements: elements}
}

func (l *list) String() string {
	if l.elements == nil || len(*l.elements) == 0 {
		return ""
	}
	return "[" + strings.Join(*l.elements, ",") + "]"
}

// Type is that of lists of texts, so that the help shows them alike.
func (l *list) Type() string { return "stringSlice" }

// Set takes the elements in.
func (l *list) Set(text string) error {
	elements, err := elementsOf(text, l.words)
	if err != nil {
		return err
	}
	if !l.given {
		*l.elements, l.given = nil, true
	}
	*l.elements = append(*l.elements, elements...)
	return nil
}

// Errors of lists, each a rule.
var (
	errBlankWithin = errors.New("an element has no blanks within it: commas separate elements")
	errNoElement   = errors.New("an element is missing beside a comma")
)

// elementsOf are the elements of a list; none of a text of blanks.
func elementsOf(text string, words bool) (elements []string, _ error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for element := range strings.SplitSeq(text, ",") {
		element = strings.TrimSpace(element)
		switch {
		case element == "":
			return nil, fmt.Errorf("%q: %w", text, errNoElement)
		case words && strings.ContainsFunc(element, unicode.IsSpace):
			return nil, fmt.Errorf("%q: %w", element, errBlankWithin)
		}
		elements = append(elements, element)
	}
	return elements, nil
}

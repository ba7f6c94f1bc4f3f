package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// A place is a file and a rule.
type place struct{ file, rule string }

func (p place) compare(other place) int {
	return strings.Compare(p.file+"\t"+p.rule, other.file+"\t"+other.rule)
}

// ceilings are how many findings each place may have. findings are the lines of those that it has.
type (
	ceilings map[place]int
	findings map[place][]int
)

func readCeilings(file string) (ceilings, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the file of this program, or of its test
	if err != nil {
		return nil, err
	}
	most := ceilings{}
	for line := range strings.Lines(string(text)) {
		var at place
		var count int
		if _, err := fmt.Sscan(line, &at.file, &at.rule, &count); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
		most[at] = count
	}
	return most, nil
}

func (c ceilings) write(file string) error {
	var text strings.Builder
	for _, at := range slices.SortedFunc(maps.Keys(c), place.compare) {
		fmt.Fprintf(&text, "%s\t%s\t%d\n", at.file, at.rule, c[at])
	}
	return os.WriteFile(file, []byte(text.String()), 0o644) //nolint:gosec // as other files of the repository
}

// over are the places that have more findings than they may, as errors with their lines.
func (c ceilings) over(found findings) error {
	var errs []error
	for _, at := range slices.SortedFunc(maps.Keys(found), place.compare) {
		if lines := found[at]; len(lines) > c[at] {
			errs = append(errs, fmt.Errorf("%s: %s: %d findings, and at most %d are allowed: lines %v", at.file, at.rule, len(lines), c[at], lines))
		}
	}
	return errors.Join(errs...)
}

// check fails if a place has more findings than its ceiling, or fewer.
func check(_ string, most ceilings, found findings) error {
	errs := []error{most.over(found)}
	for _, at := range slices.SortedFunc(maps.Keys(most), place.compare) {
		if now := len(found[at]); now < most[at] {
			errs = append(errs, fmt.Errorf("%s: %s: lower the ceiling from %d to %d: make fix-language", at.file, at.rule, most[at], now))
		}
	}
	return errors.Join(errs...)
}

// fix lowers each ceiling to what is found. It raises none, and fails if there is more.
func fix(file string, most ceilings, found findings) error {
	lowered := ceilings{}
	for at, ceiling := range most {
		if now := min(ceiling, len(found[at])); now > 0 {
			lowered[at] = now
		}
	}
	return errors.Join(lowered.write(file), most.over(found))
}

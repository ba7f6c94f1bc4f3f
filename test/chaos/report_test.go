package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/test/chaos/judge"
)

func reportOf(rounds ...*result) *report { return &report{Rounds: rounds} }

var (
	cleanRound    = &result{Seed: 7, Profile: fastTicks, Nemeses: []string{"N1"}, Grants: 5, Forced: 2, Margins: []time.Duration{30e6, 40e6}}
	invalidRound  = &result{Seed: 8, Profile: fastTicks, Nemeses: []string{"N2"}, Invalid: "nothing happened"}
	violatedRound = &result{
		Seed: 9, Profile: realTicks, Nemeses: []string{"N1", "N7"}, Replay: "again", Margins: []time.Duration{-1e6},
		Violations: []judge.Violation{{Checker: judge.Belief, Text: "two were sure"}},
	}
)

func TestTheExitCodeTellsViolationsFromWhatCouldNotBeTold(t *testing.T) {
	many := reportOf()
	for range 100 {
		many.Rounds = append(many.Rounds, cleanRound)
	}
	for range 5 {
		many.Rounds = append(many.Rounds, invalidRound)
	}
	for _, c := range []struct {
		name   string
		report *report
		err    error
		want   int
	}{
		{"clean", reportOf(cleanRound), nil, exitClean},
		{"a violation", reportOf(cleanRound, violatedRound), nil, exitViolated},
		{"a violation, and then something broke", reportOf(violatedRound), errors.New("broken"), exitViolated},
		{"something broke", reportOf(cleanRound), errors.New("broken"), exitUnable},
		{"one invalid round", reportOf(cleanRound, invalidRound), nil, exitClean},
		{"too many", reportOf(cleanRound, invalidRound, invalidRound), nil, exitUnable},
		{"few of many", many, nil, exitClean},
	} {
		if got := c.report.code(c.err); got != c.want {
			t.Errorf("%s: %d, not %d", c.name, got, c.want)
		}
	}
}

func TestReportsAddUp(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for directory, part := range map[string]*report{one: reportOf(cleanRound, invalidRound), two: reportOf(violatedRound)} {
		if err := part.write(directory); err != nil {
			t.Fatal(err)
		}
	}
	sum := reportOf()
	for _, directory := range []string{one, two} {
		if err := sum.add(filepath.Join(directory, reportJSON)); err != nil {
			t.Fatal(err)
		}
	}
	if difference := cmp.Diff(reportOf(cleanRound, invalidRound, violatedRound), sum); difference != "" {
		t.Error(difference)
	}
	if err := sum.add(filepath.Join(one, "none")); err == nil {
		t.Error("a report that is not there was added")
	}
}

func TestTheReportNamesWhatToLookInto(t *testing.T) {
	var page strings.Builder
	reportOf(cleanRound, invalidRound, violatedRound).markdown(&page)
	for _, want := range []string{
		"# Chaos: 1 violations in 3 rounds", "| N1 | 2 |", "| none: two were sure at once | 1 |", "| 0s to 50ms | 2 |",
		"C2 belief: two were sure", "`again`", "nothing happened", "guarded writes judged: 1 violations\n",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &page)
		}
	}
}

func TestMarginsAreCountedInTheBarThatTheyBelongTo(t *testing.T) {
	for margin, want := range map[time.Duration]string{
		-1: "none: two were sure at once", 0: "0s to 50ms", 50*time.Millisecond - 1: "0s to 50ms",
		50 * time.Millisecond: "50ms to 100ms", 10 * time.Second: "10s and more",
	} {
		var page strings.Builder
		histogram(&page, []time.Duration{margin})
		if line := fmt.Sprintf("| %s | 1 |", want); !strings.Contains(page.String(), line) {
			t.Errorf("%v is not in %s:\n%s", margin, want, &page)
		}
	}
}

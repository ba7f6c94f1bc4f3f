package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/chaos/crosscheck"
	"github.com/sidekeeper/sidekeeper/test/chaos/judge"
)

func TestWhereTheJudgesDifferIsAViolation(t *testing.T) {
	broken := func(promise string) crosscheck.Verdict {
		return crosscheck.Verdict{Violations: []crosscheck.Violation{{Promise: promise, Text: "told"}}}
	}
	found := func(checkers ...judge.Checker) (v judge.Verdict) {
		for _, checker := range checkers {
			v.Violations = append(v.Violations, judge.Violation{Checker: checker})
		}
		return v
	}
	counted := crosscheck.Verdict{}
	counted.Counts.Grants = 7
	for name, test := range map[string]struct {
		first judge.Verdict
		other crosscheck.Verdict
		want  string
	}{
		"nothing":             {},
		"both":                {first: found(judge.Belief), other: broken("2")},
		"both, elsewhere":     {first: found(judge.Leftovers), other: broken("4")},
		"second only":         {other: broken("7"), want: "it alone says that promise 7 was broken: told"},
		"unknown promise":     {first: found(judge.Belief), other: broken("99"), want: "it alone says|it does not find what C2"},
		"first only":          {first: found(judge.Numbers), want: "it does not find what C6 sequences has found"},
		"first alone may":     {first: found(judge.Leftovers, judge.Effects, judge.Fairness)},
		"another count":       {first: judge.Verdict{Grants: 8}, other: counted, want: "{Grants:7 Numbers:0 Guarded:0}, the first {Grants:8 "},
		"second is unable":    {other: crosscheck.Verdict{Unjudged: "gaps"}, want: "it cannot judge: gaps"},
		"neither can judge":   {first: judge.Verdict{Invalid: "gaps"}, other: crosscheck.Verdict{Unjudged: "gaps"}},
		"two things, at once": {first: found(judge.Belief), other: broken("6"), want: "it alone says|it does not find"},
	} {
		differences := differences(test.first, test.other)
		wanted := strings.FieldsFunc(test.want, func(c rune) bool { return c == '|' })
		if !slices.EqualFunc(differences, wanted, func(v judge.Violation, text string) bool {
			return v.Checker == second && strings.Contains(v.Text, text)
		}) {
			t.Errorf("%s: %v, not %q", name, differences, wanted)
		}
	}
}

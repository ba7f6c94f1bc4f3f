package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/sidekeeper/sidekeeper/test/chaos/crosscheck"
	"github.com/sidekeeper/sidekeeper/test/chaos/judge"
)

// second is the checker of what the two judges do not agree on.
const second judge.Checker = "C12 second judge"

// counterparts are the checkers, of which one must have found it too, when the second judge says that a promise was broken: the promises have
// their numbers in docs/guarantees.md.
var counterparts = map[string][]judge.Checker{
	"1":  {judge.Truth},
	"2":  {judge.Belief, judge.Truth},
	"3":  {judge.Effects, judge.Truth},
	"4":  {judge.Losses, judge.Leftovers},
	"5":  {judge.Leftovers, judge.Fairness},
	"6":  {judge.Numbers},
	"7":  {judge.Numbers},
	"8":  {judge.Membership, judge.Leftovers},
	"9":  {judge.Membership},
	"10": {judge.Configuration},
	"11": {judge.Watches},
	"12": {judge.Guards},
}

// shared are the checkers whose every finding the second judge must have made, too. The others look at more than it does.
var shared = []judge.Checker{judge.Belief, judge.Numbers, judge.Guards}

// crosscheck has the second judge look at the round, and returns where the two differ.
func (r *round) crosscheck(ctx context.Context, first judge.Verdict) []judge.Violation {
	if !r.careful {
		return nil
	}
	verdict, err := crosscheck.Judge(ctx, r.since, r.folder, r.dataDirectories())
	if err != nil {
		return []judge.Violation{{Checker: second, Text: err.Error()}}
	}
	return differences(first, verdict)
}

// differences are what only one of the judges has found, or has counted.
func differences(first judge.Verdict, other crosscheck.Verdict) (found []judge.Violation) {
	differ := func(format string, arguments ...any) {
		found = append(found, judge.Violation{Checker: second, Text: fmt.Sprintf(format, arguments...)})
	}
	if other.Unjudged != "" {
		if first.Invalid == "" {
			differ("it cannot judge: %s", other.Unjudged)
		}
		return found
	}
	for _, violation := range other.Violations {
		if !accused(first, counterparts[violation.Promise]...) {
			differ("it alone says that promise %s was broken: %s", violation.Promise, violation.Text)
		}
	}
	for _, checker := range shared {
		judged := func(v crosscheck.Violation) bool { return slices.Contains(counterparts[v.Promise], checker) }
		if accused(first, checker) && !slices.ContainsFunc(other.Violations, judged) {
			differ("it does not find what %s has found", checker)
		}
	}
	if counted := (crosscheck.Counts{Grants: first.Grants, Numbers: first.Numbers, Guarded: first.Guarded}); other.Counts != counted {
		differ("it counts %+v, the first %+v", other.Counts, counted)
	}
	return found
}

// accused says whether one of these checkers has found anything.
func accused(verdict judge.Verdict, checkers ...judge.Checker) bool {
	return slices.ContainsFunc(verdict.Violations, func(v judge.Violation) bool { return slices.Contains(checkers, v.Checker) })
}

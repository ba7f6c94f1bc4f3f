package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A packageTime is how long the tests of one package of Go took, as `go test` says it.
type packageTime struct {
	name    string
	seconds float64
	cached  bool
}

var (
	packageLine = regexp.MustCompile(`^(?:ok|FAIL)\s+(\S+)\s+(?:([\d.]+)s|\(cached\))`)
	failureLine = regexp.MustCompile(`^\s*--- FAIL: (\S+)|^FAILED (\S+)|^FAIL\s+(\S+)`)
)

// troubleLine begins what a program says of its first failure: Go, pytest, Node and Maven.
var troubleLine = regexp.MustCompile(`--- FAIL|^WARNING: DATA RACE|^panic:|^fatal error:|^E  |^not ok|^✖|^\[ERROR\]`)

// nextLine begins what another test of Go says, so it ends what the failed one said.
var nextLine = regexp.MustCompile(`^(--- |=== |PASS$|FAIL|ok\s)`)

const (
	quoted    = 6   // lines of a target that has failed: two of how its first failure begins and the rest of how it ends, or its last
	beginning = 2   // of them
	quotedRow = 240 // bytes of each
)

// quote keeps the lines that tell why a target fails. What a sidecar logs is not among them.
func (r *result) quote(line string) {
	said := strings.TrimSpace(line)
	if said == "" || strings.HasPrefix(said, "{") || r.told {
		return
	}
	switch {
	case r.troubled:
		r.told = nextLine.MatchString(line)
	case troubleLine.MatchString(said):
		r.troubled, r.why = true, nil
	}
	r.why = append(r.why, said[:min(len(said), quotedRow)])
	if len(r.why) > quoted {
		first := 0
		if r.troubled {
			first = beginning
		}
		r.why = slices.Delete(r.why, first, first+1)
	}
}

// note keeps what a line says of times and failures.
func (r *result) note(line string) {
	r.quote(line)
	if found := packageLine.FindStringSubmatch(line); found != nil {
		seconds, _ := strconv.ParseFloat(found[2], 64) // nothing if it is cached
		r.packages = append(r.packages, packageTime{name: found[1], seconds: seconds, cached: found[2] == ""})
	}
	if found := failureLine.FindStringSubmatch(line); found != nil {
		r.failed = append(r.failed, strings.Join(found[1:], ""))
	}
}

func (r *result) verdict() string {
	if r.err != nil {
		return "failed"
	}
	return "passed"
}

// report writes the table of seconds for people.
func report(to io.Writer, steps []*step, results []result) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nlane\ttarget\tseconds\tCPU seconds\t")
	failed := 0
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%.0f\t%.0f\t%s\n", r.lane, r.target, r.took.Seconds(), r.cpu.Seconds(), r.verdict())
		if r.err != nil {
			failed++
		}
	}
	fmt.Fprintln(table, "\npackage\ttarget\tseconds\t")
	for _, r := range results {
		slices.SortStableFunc(r.packages, func(a, b packageTime) int { return cmp.Compare(b.seconds, a.seconds) })
		for _, p := range r.packages {
			took := fmt.Sprintf("%.1f", p.seconds)
			if p.cached {
				took = "cached"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\n", strings.TrimPrefix(p.name, modulePath), r.target, took)
		}
	}
	_ = table.Flush() // what cannot be told is not worth more
	tellRest(to, steps)
	for _, r := range results {
		r.tellFailure(to)
	}
	fmt.Fprintf(to, "targets: %d passed, %d failed\n", len(results)-failed, failed)
}

// tellRest says which lanes were not run, by the reason.
func tellRest(to io.Writer, steps []*step) {
	left := map[string][]string{}
	for _, s := range steps {
		why := s.why
		if s.rests {
			why = "passed with these inputs"
		}
		if !s.runs {
			left[why] = append(left[why], s.lane.Name)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(to, "not run: %s: %s\n", strings.Join(left[why], " "), why)
	}
}

// tellFailure says which tests of a target have failed, and quotes the first.
func (r *result) tellFailure(to io.Writer) {
	if r.err == nil {
		return
	}
	fmt.Fprintf(to, "%s failed: %v: %s\n", r.target, r.err, strings.Join(r.failed, ", "))
	for _, line := range r.why {
		fmt.Fprintf(to, "    %s\n", line)
	}
}

const modulePath = "github.com/sidekeeper/sidekeeper/"

// tabulate writes the same for programs: a line each, in columns that tabs part.
func tabulate(to io.Writer, steps []*step, results []result) {
	fmt.Fprintln(to, "kind\tlane\tname\tseconds\tcpu_seconds\tverdict")
	for _, r := range results {
		fmt.Fprintf(to, "target\t%s\t%s\t%.1f\t%.1f\t%s\n", r.lane, r.target, r.took.Seconds(), r.cpu.Seconds(), r.verdict())
		for _, p := range r.packages {
			fmt.Fprintf(to, "package\t%s\t%s\t%.1f\t\t\n", r.lane, strings.TrimPrefix(p.name, modulePath), p.seconds)
		}
	}
	for _, s := range steps {
		if !s.runs {
			fmt.Fprintf(to, "lane\t%s\t%s\t\t\tnot run\n", s.lane.Name, s.why)
		}
	}
}

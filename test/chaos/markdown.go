package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/judge"
	"github.com/sidekeeper/sidekeeper/test/chaos/nemesis"
)

// totals are the sums of some rounds.
type totals struct {
	rounds, invalid                        int
	seconds                                float64
	operations, strikes                    int
	grants, epochs, forced, lost, needless int
	numbers, configuration, views          int
	lostByNaive                            int
	guarded, tooLate, delayed              int
	deliveries, items, passed, entries     int
	shared, borne, rested                  int
	idle                                   []time.Duration
	ticks, runs, repeated, missed          int
	violations                             int
	spared                                 int // lost needlessly in rounds that must cost no lease
	restarts                               int // of sidecars, that had to cost nothing
	outlived, lostThen                     int // holds, members and places
	margins                                []time.Duration
	pauses                                 []time.Duration
}

func (t *totals) add(r *result) {
	t.rounds++
	if r.Invalid != "" {
		t.invalid++
	}
	t.seconds += r.Seconds
	t.operations += r.Operations
	t.strikes += r.Strikes
	t.grants += r.Grants
	t.epochs += r.Epochs
	t.forced += r.Forced
	t.lost += r.Losses
	t.needless += r.Needless
	if r.Steady {
		t.spared += r.Needless
	}
	t.numbers += r.Numbers
	t.configuration += r.Configuration
	t.views += r.Views
	t.lostByNaive += r.LostByNaive
	t.addOthers(r)
	t.violations += len(r.Violations)
	t.restarts += r.Restarts
	t.outlived += r.Outlived.All()
	t.lostThen += r.LostThen.All()
	t.margins = append(t.margins, r.Margins...)
	t.pauses = append(t.pauses, r.Pauses...)
}

// addOthers adds what is no lock.
func (t *totals) addOthers(r *result) {
	t.guarded += r.Guarded
	t.tooLate += r.TooLate
	t.delayed += r.Delayed
	t.deliveries += r.Deliveries
	t.items += r.Items
	t.passed += r.Passed
	t.entries += r.Entries
	t.shared += r.Shared
	t.borne += r.Borne
	t.rested += r.Rested
	t.idle = append(t.idle, r.Idle...)
	t.ticks += r.Ticks
	t.runs += r.Runs
	t.repeated += r.Repeated
	t.missed += r.Missed
}

func (r *report) totals() totals { return r.totalsOf(func(*result) bool { return true }) }

func (r *report) totalsOf(counts func(*result) bool) totals {
	var t totals
	for _, each := range r.Rounds {
		if counts(each) {
			t.add(each)
		}
	}
	return t
}

// markdown writes the report for people.
func (r *report) markdown(out io.Writer) {
	t := r.totals()
	verdict := "no violation"
	if t.violations > 0 {
		verdict = fmt.Sprintf("%d violations", t.violations)
	}
	fmt.Fprintf(out, "# Chaos: %s in %d rounds\n\n%s\n\n", verdict, t.rounds, rule)
	r.figures(out, t)
	r.byNemesis(out)
	histogram(out, t.margins)
	r.violations(out)
	r.invalid(out)
	r.played(out)
	fmt.Fprintf(out, "\n%d rounds, %d grants and %d guarded writes judged: %s\n", t.rounds, t.grants, t.guarded, verdict)
}

// rule says when a round counts, for two processors that others use as well.
var rule = fmt.Sprintf(`A round counts if callers did at least %.0f operations a second before the first fault (of four workloads or more), the
nemeses that force hand-overs forced at least %d of them (%d in rounds with a tick of 2 s), clients that were stopped between
check and act damaged the naive store, the servers' logs agree and have no gaps, and at the end one of everything worked at
each sidecar. Others are invalid, and are played once more; more than one round in twenty must not be.`,
	profiles[fastTicks].rate, profiles[fastTicks].forced, profiles[realTicks].forced)

func (r *report) figures(out io.Writer, t totals) {
	rows := [][2]any{
		{"rounds", t.rounds},
		{"of them invalid", t.invalid},
		{"time", time.Duration(t.seconds * float64(time.Second)).Round(time.Second)},
		{"operations", t.operations},
		{"faults", t.strikes},
		{"grants", t.grants},
		{"lock epochs by the transaction logs", t.epochs},
		{"forced hand-overs", t.forced},
		{"leases' holds and memberships lost", t.lost},
		{"of them needlessly", t.needless},
		{"of these in rounds that must cost no lease", t.spared},
		{"numbers of sequences", t.numbers},
		{"calls of the configuration", t.configuration},
		{"messages of watches", t.views},
		{"updates lost by the naive store", t.lostByNaive},
		{"writes that a lock guarded", t.guarded},
		{"writes without a guard that came too late", t.tooLate},
		{"grants after a lost hold with a delay", t.delayed},
		{"deliveries of items of queues", t.deliveries},
		{"items that were removed, each once", t.items},
		{"barriers passed", t.passed},
		{"entries to double barriers", t.entries},
		{"times that a member of a set had an item", t.shared},
		{"for how long one had no holder before that: p50, p99", quantiles(t.idle)},
		{"times that a caller had a number of a pool", t.borne},
		{"of them, after a caller that had lost it", t.rested},
		{"ticks of schedules that have begun", t.ticks},
		{"runs of schedules that have begun", t.runs},
		{"attempts at either that followed a lost one", t.repeated},
		{"ticks that were missed", t.missed},
		{"sidecars replaced so soon that it must cost nothing", t.restarts},
		{"what outlived them: holds, members and places of waiters", t.outlived},
		{"and what was lost then", t.lostThen},
		{"pause of a holder or member after the new one listens: p50, p99", quantiles(t.pauses)},
		{"violations", t.violations},
	}
	fmt.Fprint(out, "| what | how many |\n|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(out, "| %v | %v |\n", row[0], row[1])
	}
}

// quantiles are the median and the 99th percentile of some times.
func quantiles(times []time.Duration) string {
	if len(times) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(times))
	at := func(percent int) time.Duration { return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond) }
	return fmt.Sprintf("%v, %v", at(50), at(99))
}

func (r *report) byNemesis(out io.Writer) {
	fmt.Fprint(out, "\n## By nemesis\n\n"+
		"A round with two counts for both. Needless is what no fault explains, and what was lost in rounds that must cost no lease.\n\n"+
		"| nemesis | rounds | faults | forced | lost | needlessly | where none must be | violations | what it does |\n"+
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, n := range nemesis.All {
		t := r.totalsOf(func(one *result) bool { return slices.Contains(one.Nemeses, n.Name) })
		if t.rounds > 0 {
			fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %d | %d | %s |\n",
				n.Name, t.rounds, t.strikes, t.forced, t.lost, t.needless, t.spared, t.violations, n.About)
		}
	}
}

// bounds are those of the histogram's bars.
var bounds = []time.Duration{
	0, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

// histogram shows for how long nobody was sure of a lock when it changed hands by force.
func histogram(out io.Writer, margins []time.Duration) {
	if len(margins) == 0 {
		return
	}
	fmt.Fprintf(out, "\n## Margins\n\nHow long after a holder was last sure of its lock the next one was, in %d forced hand-overs; "+
		"at least %v.\n\n", len(margins), slices.Min(margins).Round(time.Millisecond))
	bars := make([]int, len(bounds)+1)
	for _, margin := range margins {
		bar, _ := slices.BinarySearch(bounds, margin+1)
		bars[bar]++
	}
	const widest = 40
	fmt.Fprint(out, "| margin | hand-overs | |\n|---|---|---|\n")
	for i, count := range bars {
		width := (count*widest + slices.Max(bars) - 1) / slices.Max(bars)
		fmt.Fprintf(out, "| %s | %d | %s |\n", rangeOf(i), count, strings.Repeat("█", width))
	}
}

func rangeOf(bar int) string {
	switch bar {
	case 0:
		return "none: two were sure at once"
	case len(bounds):
		return fmt.Sprintf("%v and more", bounds[bar-1])
	default:
		return fmt.Sprintf("%v to %v", bounds[bar-1], bounds[bar])
	}
}

func (r *report) violations(out io.Writer) {
	checkers := map[judge.Checker]int{}
	for _, each := range r.Rounds {
		for _, violation := range each.Violations {
			checkers[violation.Checker]++
		}
	}
	if len(checkers) == 0 {
		return
	}
	fmt.Fprint(out, "\n## Violations\n\n| checker | how many |\n|---|---|\n")
	for _, checker := range slices.Sorted(maps.Keys(checkers)) {
		fmt.Fprintf(out, "| %s | %d |\n", checker, checkers[checker])
	}
	for _, each := range r.Rounds {
		if len(each.Violations) > 0 {
			fmt.Fprintf(out, "\n`%s` (%s)\n\n", each.Replay, each.Folder)
		}
		for _, violation := range each.Violations {
			fmt.Fprintf(out, "- %s: %s\n", violation.Checker, violation.Text)
		}
	}
}

func (r *report) invalid(out io.Writer) {
	if r.totals().invalid == 0 {
		return
	}
	fmt.Fprint(out, "\n## Invalid rounds\n\nThey show nothing, and were played again. Violations in them count.\n\n")
	for _, each := range r.Rounds {
		if each.Invalid != "" {
			fmt.Fprintf(out, "- `%s` (%s): %s\n", each.Replay, strings.Join(each.Nemeses, "+"), each.Invalid)
		}
	}
}

func (r *report) played(out io.Writer) {
	fmt.Fprint(out, "\n## Rounds\n\n`go run ./test/chaos -rounds 1 -profile PROFILE -seed SEED` plays one again.\n\n"+
		"| profile | seed | timeout | nemeses | workloads | seconds | operations | grants | forced | lost | violations |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, each := range r.Rounds {
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %.0f | %d | %d | %d | %d | %d |\n",
			each.Profile, each.Seed, each.Timeout, strings.Join(each.Nemeses, "+"), strings.Join(each.Workloads, "+"), each.Seconds,
			each.Operations, each.Grants, each.Forced, each.Losses, len(each.Violations))
	}
}

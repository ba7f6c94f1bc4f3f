package main

import (
	"errors"
	"fmt"
	"slices"
)

// The servers that experiments are done on.
const (
	standalone = "standalone"
	onEnsemble = "ensemble"
)

// A finding is the table that an experiment has filled.
type finding struct {
	experiment, on string
	table          *table
}

type findings []finding

// A goal is a bound for one figure: a cell of the table of an experiment.
type goal struct {
	on, experiment, row, column string
	compared                    string // the figure with the bound: atLeast or atMost
	bound                       float64
}

const (
	atLeast = "≥"
	atMost  = "≤"
)

// What contenders are called that goals are about.
const (
	leaseName  = "sidecar, lease"
	plainName  = "sidecar, no lease"
	streamName = "sidecar, stream"
	clientName = "sidecar, Go client"

	permitName   = "permit"
	electionName = "leadership"
)

// goals is all there are.
func goals() []goal {
	return slices.Concat(pairGoals(), handoverGoals(), otherGoals())
}

func pairGoals() []goal {
	all := []goal{
		{standalone, "pairs-1", leaseName, "p50 ÷ floor", atMost, 1.9},
		{standalone, "pairs-64", leaseName, "rate ÷ floor", atLeast, 0.30},
		{standalone, "pairs-64", leaseName, "rate ÷ v3lock", atLeast, 0.90},
		{standalone, "pairs-64", leaseName, "sidecar CPU µs", atMost, 300},
		{standalone, "pairs-64", plainName, "rate ÷ lease", atLeast, 0.90},
		{standalone, "threads-64", streamName, "rate ÷ floor", atLeast, 0.70},
		{onEnsemble, "pairs-64", plainName, "rate ÷ lease", atLeast, 0.90},
	}
	for _, row := range []string{streamName, clientName} {
		all = append(all, []goal{
			{standalone, "pairs-1", row, "p50 ÷ floor", atMost, 1.5},
			{standalone, "pairs-1", row, "p50 ÷ v3lock", atMost, 1},
			{standalone, "pairs-64", row, "rate ÷ floor", atLeast, 0.45},
			{standalone, "pairs-64", row, "rate ÷ v3lock", atLeast, 1.3},
			{standalone, "pairs-64", row, "CPU ÷ v3lock", atMost, 0.85},
			{standalone, "pairs-64", row, "sidecar CPU µs", atMost, 150},
			{onEnsemble, "pairs-1", row, "p50 ÷ floor", atMost, 1.25},
			{onEnsemble, "pairs-64", row, "rate ÷ floor", atLeast, 0.80},
			{onEnsemble, "pairs-64", row, "rate ÷ v3lock", atLeast, 1},
			{onEnsemble, "pairs-64", row, "CPU ÷ v3lock", atMost, 0.85},
		}...)
	}
	return all
}

func handoverGoals() (all []goal) {
	for _, on := range []string{standalone, onEnsemble} {
		for _, waiters := range []int{2, 16, 128} {
			experiment := fmt.Sprintf("handover-%d", waiters)
			for _, row := range []string{leaseName, streamName, clientName} {
				all = append(all, goal{on, experiment, row, "p50 ÷ floor", atMost, 1.2})
			}
			if on == standalone {
				all = append(all, goal{on, experiment, leaseName, "requests per cycle", atMost, 4.1})
			}
		}
	}
	return all
}

func otherGoals() []goal {
	all := []goal{
		{standalone, "sequence-64", "sidecar, STRICT", "rate ÷ read and set", atLeast, 20},
		{standalone, "sequence-64", "sidecar, STRICT", "rate ÷ etcd", atLeast, 1.5},
		{onEnsemble, "sequence-64", "sidecar, STRICT", "rate ÷ read and set", atLeast, 40},
		{standalone, "idle", "four connections, each stream holds a lock", "RSS KiB", atMost, 48},
		{standalone, "idle", "four connections, each stream holds a lock", "sidecar CPU µs/s", atMost, 40},
		{onEnsemble, "idle", "four connections, each stream holds a lock", "transactions/s", atMost, 0.004},
		{standalone, "idle", "one connection for all", "transactions/s", atMost, 0.001}, // the reader's, and none
		{onEnsemble, "idle", "one connection for all", "transactions/s", atMost, 0.001},
	}
	for _, on := range []string{standalone, onEnsemble} {
		all = append(all, []goal{
			{on, "permits-16", permitName, "p50 ÷ lock", atMost, 1.5},
			{on, "permits-16", electionName, "p50 ÷ lock", atMost, 1.2},
			{on, "sequence-64", "sidecar, RELAXED", "rate ÷ echo", atLeast, 0.8},
			{on, "watch-1000", "sidecar, one connection", "p50 ÷ a session each", atMost, 0.5},
			{on, "watch-1000", "sidecar, a connection each", "p50 ÷ a session each", atMost, 0.5},
			{on, "watch-1000", "sidecar, one connection", "requests per update", atMost, 3},
			{on, "watch-1000", "sidecar, a connection each", "requests per update", atMost, 3},
			{on, "killed", "a watcher at the same sidecar", "p50 µs", atMost, 10_000},
			{on, "killed", "a watcher at another sidecar", "p50 µs", atMost, 10_000},
			{on, "killed", "20 at once, a watcher at another sidecar", "p50 µs", atMost, 20_000},
			{on, "joins-64", "sidecar, a connection each", "rate ÷ go-zookeeper", atLeast, 1.3},
			{on, "joins-64", "sidecar", "rate ÷ go-zookeeper", atLeast, 2},
		}...)
	}
	return all
}

// judge sets what was measured beside the goals for it; nil if there are none. A goal for what its table does not have is an error.
func (f findings) judge(goals []goal) (*table, error) {
	t := &table{title: "Goals", header: []string{"goal", "measured", "met"}}
	var missing error
	for _, found := range f {
		for _, g := range goals {
			if g.experiment != found.experiment || g.on != found.on {
				continue
			}
			measured, err := found.table.cell(g.row, g.column)
			if err != nil {
				missing = errors.Join(missing, fmt.Errorf("goal of %s, %s: %w", g.experiment, g.on, err))
				continue
			}
			met := measured <= g.bound
			if g.compared == atLeast {
				met = measured >= g.bound
			}
			t.add(fmt.Sprintf("%s, %s: %s, %s %s %g", g.on, g.experiment, g.row, g.column, g.compared, g.bound),
				fmt.Sprintf("%g", measured), map[bool]string{true: "yes", false: "no"}[met])
		}
	}
	if len(t.rows) == 0 {
		return nil, missing
	}
	return t, missing
}

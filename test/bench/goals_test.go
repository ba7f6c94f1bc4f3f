package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestGoalsAreSetBesideWhatWasMeasured(t *testing.T) {
	pairs := &table{header: []string{"", "rate ÷ floor"}}
	pairs.add("sidecar", "0.45")
	pairs.add("floor", "–")
	found := findings{{"pairs-1", standalone, pairs}}
	judged, err := found.judge([]goal{
		{standalone, "pairs-1", "sidecar", "rate ÷ floor", atLeast, 0.45},
		{standalone, "pairs-1", "sidecar", "rate ÷ floor", atMost, 0.40},
		{onEnsemble, "pairs-1", "sidecar", "rate ÷ floor", atMost, 0.40},
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, row := range judged.rows {
		lines = append(lines, strings.Join(row, " | "))
	}
	want := []string{
		"standalone, pairs-1: sidecar, rate ÷ floor ≥ 0.45 | 0.45 | yes", "standalone, pairs-1: sidecar, rate ÷ floor ≤ 0.4 | 0.45 | no",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
	for _, g := range []goal{{row: "sidecar", column: "p50"}, {row: "other", column: "rate ÷ floor"}, {row: "floor", column: "rate ÷ floor"}} {
		g.on, g.experiment = standalone, "pairs-1"
		if _, err := found.judge([]goal{g}); err == nil {
			t.Errorf("%v has a figure", g)
		}
	}
}

// Goals are about what there is: so that none is left out for a word that was changed.
func TestGoalsAreOfExperimentsAndTheirFigures(t *testing.T) {
	one := func(count int) (all [][]batch) {
		for range count {
			all = append(all, []batch{{took: []time.Duration{1}, count: 1, elapsed: 1, sidecar: 1}})
		}
		return all
	}
	contenders := field{}.contenders()
	for i := range contenders {
		contenders[i].sidecar = &sidecar{}
	}
	tables := map[string]*table{
		"pairs":    pairs{}.table(contenders, one(len(contenders))),
		"handover": handover{}.table(one(len(contenders)), one(len(contenders))),
		"sequence": sequence{}.table(one(5), one(5)),
		"joins":    joins{}.table(joinersOn(nil, nil), one(5)),
		"watch":    watch{}.table(one(3), one(3)),
	}
	all := experiments(false)
	for _, g := range goals() {
		if !slices.ContainsFunc(all, func(e experiment) bool { return e.name == g.experiment }) {
			t.Errorf("%v: no such experiment", g)
		}
		kind, _, _ := strings.Cut(g.experiment, "-")
		if filled, known := tables[kind]; known {
			if _, err := filled.cell(g.row, g.column); err != nil {
				t.Errorf("%v: %v", g, err)
			}
		}
	}
}

package main

import (
	"strings"
	"testing"
	"time"
)

func TestPercentileIsTheSmallestValueThatSoManyDoNotExceed(t *testing.T) {
	values := make([]time.Duration, 200)
	for i := range values {
		values[i] = time.Duration(200 - i)
	}
	for percent, want := range map[int]time.Duration{1: 2, 50: 100, 99: 198, 100: 200} {
		if got := percentile(values, percent); got != want {
			t.Errorf("percentile %d of 1 to 200 is %d, want %d", percent, got, want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("the median of nothing is %d", got)
	}
}

func TestRatioIsTheMedianOfTheRoundsRatios(t *testing.T) {
	round := func(took time.Duration) batch { return batch{took: []time.Duration{took}} }
	ours := []batch{round(3 * time.Second), round(100 * time.Second), round(8 * time.Second)}
	theirs := []batch{round(2 * time.Second), round(time.Second), round(2 * time.Second)}
	if got := ratio(ours, theirs, batch.median); got != "4.00" {
		t.Errorf("got %s: of 1.5, 100 and 4 the median is 4", got)
	}
	if got := middle([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("the median of 1 to 4 is %v", got)
	}
}

func TestTableIsMarkdownWhereAsked(t *testing.T) {
	shown := &table{title: "Pairs", header: []string{"", "p50 µs"}, notes: []string{"Read the ratios."}}
	shown.add("floor", "7")
	shown.add("a sidecar", "1234")
	var out strings.Builder
	shown.print(&out, true)
	const want = "### Pairs\n\n" +
		"|           | p50 µs |\n" +
		"|---|---:|\n" +
		"| floor     |      7 |\n" +
		"| a sidecar |   1234 |\n" +
		"\nRead the ratios.\n\n"
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

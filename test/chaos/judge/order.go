package judge

import (
	"cmp"
	"slices"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// A span is when something was asked for and when it was known, with the numbers it was given.
type span struct {
	asked, known history.Instant
	first, last  int64
	who          *operation
}

// regressions finds the spans that were asked for when a larger number, or the same one, was known already. With each comes
// the one with the largest number that was.
func regressions(spans []span, tell func(before, after span)) {
	byAsked := slices.SortedStableFunc(slices.Values(spans), func(a, b span) int { return cmp.Compare(a.asked, b.asked) })
	byKnown := slices.SortedStableFunc(slices.Values(spans), func(a, b span) int { return cmp.Compare(a.known, b.known) })
	var largest *span
	for _, after := range byAsked {
		for len(byKnown) > 0 && byKnown[0].known < after.asked {
			if largest == nil || byKnown[0].last > largest.last {
				largest = &byKnown[0]
			}
			byKnown = byKnown[1:]
		}
		if largest != nil && largest.last >= after.first {
			tell(*largest, after)
		}
	}
}

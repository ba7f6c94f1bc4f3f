package judge

import (
	"testing"
)

func TestNumbersThatAreHandedOutTwiceOrOutOfOrderAreTold(t *testing.T) {
	judgeAll(t, Numbers, []story{
		{name: "one after the other", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 1 1
			12 1/2 asked S 3 strict
			13 1/2 got 2 3
			14 2/1 asked S 1 strict
			15 2/1 got 5 1`},
		{name: "the same number twice", seen: `
			10 1/1 asked S 1 relaxed
			11 1/1 got 7 1
			12 2/1 asked S 1 relaxed
			13 2/1 got 7 1`, want: "got 7 to 7"},
		{name: "ranges that overlap", seen: `
			10 1/1 asked S 10 relaxed
			11 1/1 got 1 10
			12 2/1 asked S 10 relaxed
			13 2/1 got 10 10`, want: "got 1 to 10 of S, and client 2/1 got 10 to 19"},
		{name: "a number within a range two before", seen: `
			10 1/1 asked S 10 relaxed
			11 1/1 got 1 10
			12 2/1 asked S 1 relaxed
			13 2/1 got 2 1
			14 2/2 asked S 1 relaxed
			15 2/2 got 9 1`, want: "got 9 to 9"},
		{name: "a smaller number for one that asked later", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 1
			12 2/1 asked S 1 strict
			13 2/1 got 6 1`, want: "when client 1/1 had 7, and got 6"},
		{name: "a smaller number much later, after larger ones", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 1
			12 1/2 asked S 1 strict
			13 1/2 got 8 1
			90 2/1 asked S 1 strict
			99 2/1 got 1 1`, want: "had 8, and got 1"},
		{name: "a number below the larger of two that were known in the other order", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 9 1
			10 2/1 asked S 1 strict
			12 2/1 got 7 1
			20 3/1 asked S 1 strict
			21 3/1 got 8 1`, want: "when client 1/1 had 9, and got 8"},
		{name: "more numbers than were asked for", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 2`, want: "got 2"},
		{name: "numbers of a sequence that was made anew", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 1 1
			12 2/1 asked S 1 strict
			13 2/1 got 7 1 2`},
		{name: "a smaller number for one that asked at the same time", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 1
			11 2/1 asked S 1 strict
			13 2/1 got 6 1`},
		{name: "relaxed numbers in any order, and gaps after failures", seen: `
			10 1/1 asked S 1 relaxed
			11 1/1 got 70 1
			12 2/1 asked S 1 relaxed
			13 2/1 got 6 1
			14 2/2 asked S 1 strict
			15 2/2 failed Aborted OUTCOME_UNKNOWN
			16 2/3 asked S 1 strict
			17 2/3 got 100 1`},
		{name: "the same numbers of two sequences", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 1 1
			12 2/1 asked T 1 strict
			13 2/1 got 1 1`},
	})
}

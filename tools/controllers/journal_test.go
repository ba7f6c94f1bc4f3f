package controllers

import (
	"fmt"
	"slices"
	"testing"
)

// A tally is what became of the writes of an election, or of several.
type tally struct {
	writes, terms int
	overlaps      int // terms after whose first write an earlier leader wrote
	late          int // writes of earlier leaders
}

func (t tally) plus(other tally) tally {
	return tally{t.writes + other.writes, t.terms + other.terms, t.overlaps + other.overlaps, t.late + other.late}
}

func (t tally) String() string {
	return fmt.Sprintf("%d writes in %d terms; %d terms had %d late writes of earlier ones", t.writes, t.terms, t.overlaps, t.late)
}

// count takes the writers of an election in the order of their writes; each name is one leader's, for one term.
func count(writers []string) tally {
	total := tally{writes: len(writers)}
	var terms []string
	overlapped := false
	for _, writer := range writers {
		switch {
		case len(terms) > 0 && terms[len(terms)-1] == writer:
		case slices.Contains(terms, writer):
			total.late++
			if !overlapped {
				overlapped = true
				total.overlaps++
			}
		default:
			terms, overlapped = append(terms, writer), false
		}
	}
	total.terms = len(terms)
	return total
}

func TestAWriteIsLateIfALaterLeaderHasWrittenBefore(t *testing.T) {
	for _, c := range []struct {
		writers []string
		want    tally
	}{
		{[]string{"a", "a", "b", "b", "c"}, tally{writes: 5, terms: 3}},
		{[]string{"a", "b", "a", "b", "a", "b"}, tally{writes: 6, terms: 2, overlaps: 1, late: 2}},
		{[]string{"a", "b", "a", "c", "b", "a"}, tally{writes: 6, terms: 3, overlaps: 2, late: 3}},
	} {
		if got := count(c.writers); got != c.want {
			t.Errorf("%q: %+v, not %+v", c.writers, got, c.want)
		}
	}
}

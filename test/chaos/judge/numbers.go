package judge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// A counter is one incarnation of a sequence.
type counter struct {
	sequence    string
	incarnation int64
}

// checkNumbers demands that each number of an incarnation was handed out once, and strict ones in their order.
func checkNumbers(e *evidence, v *Verdict) {
	issued, strict := map[counter][]span{}, map[counter][]span{}
	for _, o := range e.operations {
		got := o.first(history.Got)
		if o.Kind != history.Asked || got == nil {
			continue
		}
		if got.Count != o.Count {
			v.accusef(Numbers, "%s asked %s for %d numbers and got %d", o.name(), o.Sequence, o.Count, got.Count)
		}
		v.Numbers += int(got.Count)
		id := counter{o.Sequence, got.Incarnation}
		s := span{o.At, got.At, got.First, got.First + got.Count - 1, o}
		issued[id] = append(issued[id], s)
		if o.Ordering == history.Strict {
			strict[id] = append(strict[id], s)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(issued), counter.compare) {
		id.checkUnique(v, issued[id])
		id.checkOrder(v, strict[id])
	}
}

func (c counter) compare(other counter) int {
	return cmp.Or(cmp.Compare(c.sequence, other.sequence), cmp.Compare(c.incarnation, other.incarnation))
}

func (c counter) checkUnique(v *Verdict, issued []span) {
	slices.SortStableFunc(issued, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(issued); i++ {
		if before := issued[i-1]; before.last >= issued[i].first {
			v.accusef(Numbers, "%s got %d to %d of %s, and %s got %d to %d",
				before.who.name(), before.first, before.last, c.sequence, issued[i].who.name(), issued[i].first, issued[i].last)
			issued[i].last = max(before.last, issued[i].last)
		}
	}
}

func (c counter) checkOrder(v *Verdict, strict []span) {
	regressions(strict, func(before, after span) {
		v.accusef(Numbers, "%s asked %s for a strict number when %s had %d, and got %d",
			after.who.name(), c.sequence, before.who.name(), before.last, after.first)
	})
}

package recipes

import (
	"cmp"
	"math"
	"slices"
)

// A queue is the contenders of one directory, in the order of their places.
type queue []child

// readQueue picks the contenders out of a directory's children and counts the others. The queue is not in order yet.
func readQueue(names []string) (contenders queue, strangers int) {
	contenders = make(queue, 0, len(names))
	for _, name := range names {
		if c, ok := parseChild(name); ok {
			contenders = append(contenders, c)
		}
	}
	return contenders, len(names) - len(contenders)
}

// aheadOf keeps those that took their places before own, in order. A contender with own's sequence number is not ahead.
func (q queue) aheadOf(own child) queue {
	ahead := slices.DeleteFunc(q, func(c child) bool { return !c.isAheadOf(own) })
	ahead.sort(own.sequence + math.MinInt32)
	return ahead
}

// inOrder sorts the whole queue. Seen from nobody's place, a queue across the wrap of the counter is a ring without a
// beginning: it begins after the widest gap.
func (q queue) inOrder() queue {
	q.sort(0)
	first, widest := 0, uint32(0)
	for i := range q {
		before := q[(i+len(q)-1)%len(q)]
		if gap := uint32(q[i].sequence) - uint32(before.sequence); gap > widest {
			first, widest = i, gap
		}
	}
	return slices.Concat(q[first:], q[:first])
}

// sort orders the queue by how far after base each sequence number was given out. Only Curator has two nodes with one
// number: a writer's and, after it, the reader's that it becomes.
func (q queue) sort(base int32) {
	slices.SortFunc(q, func(a, b child) int {
		return cmp.Or(
			cmp.Compare(uint32(a.sequence-base), uint32(b.sequence-base)),
			-cmp.Compare(a.mode, b.mode),
			cmp.Compare(a.name, b.name),
		)
	})
}

// holders is the front part of an ordered queue that holds the lock: the first, and with a reader those that are readers too.
// A contender of the other kind never holds behind it: it is refused.
func (q queue) holders() queue {
	for i, c := range q {
		together := c.sequence == q[0].sequence || c.mode == Read && q[0].mode == Read
		if !together {
			return q[:i]
		}
	}
	return q
}

// blocking keeps those of an ordered queue that somebody behind it with this mode waits for.
func (q queue) blocking(mode Mode) queue {
	return slices.DeleteFunc(slices.Clone(q), func(c child) bool { return !mode.waitsFor(c.mode) })
}

// contains says whether c is in the queue.
func (q queue) contains(c child) bool { return slices.Contains(q, c) }

// hasOtherKind says whether a contender uses the lock as what mode does not: as a mutex, or as a read/write lock.
func (q queue) hasOtherKind(mode Mode) bool {
	return slices.ContainsFunc(q, func(c child) bool { return c.mode.shared() != mode.shared() })
}

package recipes

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// A queue is the contenders of one directory.
type queue []child

// readQueue picks the contenders out of a directory's children and counts the others. The queue is not in order yet.
func (l Lock) readQueue(names []string) (contenders queue, foreignChildren int) {
	contenders = make(queue, 0, len(names))
	for _, name := range names {
		if c, ok := l.parse(name); ok {
			contenders = append(contenders, c)
		}
	}
	return contenders, len(names) - len(contenders)
}

// numbersTell says whether the order of the sequence numbers is that of the places. It is not once the counter has come to
// its end: there one server wraps, and ZooKeeper itself gives out 2147483647 again, and negative numbers in between
// while creates overtake each other. Then only the czxids tell.
func (q queue) numbersTell() bool {
	return !slices.ContainsFunc(q, func(c child) bool { return c.sequence < 0 || c.sequence == math.MaxInt32 })
}

// numbered leaves out the contenders that came after the counter's end, for one that came before it.
func (q queue) numbered() queue {
	return slices.DeleteFunc(q, func(c child) bool { return c.sequence < 0 || c.sequence == math.MaxInt32 })
}

// dates reads the czxid of each contender that is there, by name.
func (q queue) dates(read func(child) (Node, error)) (map[string]int64, error) {
	dates := make(map[string]int64, len(q))
	for _, c := range q {
		node, err := read(c)
		switch {
		case errors.Is(err, ErrNoNode):
		case err != nil:
			return nil, err
		default:
			dates[c.name] = node.Czxid
		}
	}
	return dates, nil
}

// dated keeps the contenders that are among dates, and notes their czxids.
func (q queue) dated(dates map[string]int64) queue {
	standing := q[:0]
	for _, c := range q {
		if czxid, ok := dates[c.name]; ok {
			c.czxid = czxid
			standing = append(standing, c)
		}
	}
	return standing
}

// inOrder sorts the queue. Only Curator has two nodes with one number: a writer's and, after it, the reader's that it
// becomes.
func (q queue) inOrder() queue {
	slices.SortFunc(q, func(a, b child) int {
		return cmp.Or(cmp.Compare(a.czxid, b.czxid), cmp.Compare(a.sequence, b.sequence), -cmp.Compare(a.mode, b.mode),
			cmp.Compare(a.name, b.name))
	})
	return q
}

// aheadOf is the part of an ordered queue that took its places before the node with this name; ok is false if that is
// not in the queue.
func (q queue) aheadOf(name string) (ahead queue, ok bool) {
	own := slices.IndexFunc(q, func(c child) bool { return c.name == name })
	if own < 0 {
		return nil, false
	}
	first := own
	for first > 0 && q[first-1].sequence == q[own].sequence && q[own].czxid == 0 {
		first--
	}
	return q[:first], true
}

// holders is the front part of an ordered queue that holds the lock: the first, and with a reader those that are readers too.
// A contender of the other kind never holds behind it: it is refused.
func (q queue) holders() queue {
	for i, c := range q {
		becoming := c.czxid == 0 && c.sequence == q[0].sequence // of a Curator writer
		if i > 0 && (c.mode != Read || q[0].mode != Read && !becoming) {
			return q[:i]
		}
	}
	return q
}

// blocking keeps those of an ordered queue that a contender behind it with this mode waits for.
func (q queue) blocking(mode Mode) queue {
	return slices.DeleteFunc(slices.Clone(q), func(c child) bool { return !mode.waitsFor(c.mode) })
}

// contains says whether c is in the queue.
func (q queue) contains(c child) bool { return slices.Contains(q, c) }

// hasOtherKind says whether a contender uses the lock as what mode does not: as a mutex, or as a read/write lock.
func (q queue) hasOtherKind(mode Mode) bool {
	return slices.ContainsFunc(q, func(c child) bool { return c.mode.shared() != mode.shared() })
}

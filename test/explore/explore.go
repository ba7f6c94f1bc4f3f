// Package explore plays all orders of what may happen to the machines that ship, breadth first, and holds each state against what is promised.
package explore

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A world is a state of all that is played. It never changes: each step makes another one.
type world interface {
	steps() []step
	state() string  // the same for two worlds from which the same may happen
	broken() string // which promise does not hold, in words; empty if all do
	stuck() string  // the same, of a world in which nothing can happen any more
}

// A step is one thing that may happen next.
type step struct {
	what string
	next world
	rare bool // a walk takes it seldom, or it would be over soon
}

// An outcome is what was found.
type outcome struct {
	states, depth int
	whole         bool     // each reachable state was seen
	broken        string   // of the first state in which a promise does not hold; empty if there was none
	trace         []string // the shortest way to it
}

// A key stands for a state. Two states with one key are as unlikely as a broken hash.
type key [16]byte

func keyOf(w world) key {
	sum := sha256.Sum256([]byte(w.state()))
	return key(sum[:16])
}

// An origin is how a state was reached first.
type origin struct {
	from key
	what string
}

// A reached is a state that was reached.
type reached struct {
	key
	world
}

// explore looks at states by their distance from the first, until none is left, until one breaks a promise or until there are too many.
func explore(first world, most int) outcome {
	start := keyOf(first)
	seen := map[key]origin{start: {}}
	layer, found := []reached{{start, first}}, outcome{}
	for ; len(layer) > 0 && len(seen) <= most; found.depth++ {
		var next []reached
		for _, at := range layer {
			var end key
			found.broken, end, next = at.expand(seen, next)
			if found.broken != "" {
				found.states, found.trace = len(seen), traceOf(seen, start, end)
				return found
			}
		}
		layer = next
	}
	found.states, found.whole = len(seen), len(layer) == 0
	return found
}

// expand appends the states behind one that were not seen before. It stops at the first in which a promise does not hold, and says which it is.
func (r reached) expand(seen map[key]origin, next []reached) (broken string, where key, _ []reached) {
	steps := r.steps()
	if len(steps) == 0 {
		return r.stuck(), r.key, next
	}
	for _, s := range steps {
		to := keyOf(s.next)
		_, known := seen[to]
		if !known {
			seen[to] = origin{r.key, s.what}
			next = append(next, reached{to, s.next})
		}
		if broken := s.next.broken(); broken != "" {
			return broken, to, next
		}
	}
	return "", r.key, next
}

func traceOf(seen map[key]origin, start, to key) (trace []string) {
	for at := to; at != start; at = seen[at].from {
		trace = append([]string{seen[at].what}, trace...)
	}
	return trace
}

// walk takes one way at random, and says what it has broken, with the way.
func walk(at world, dice *rand.Rand, longest int) (broken string, trace []string) {
	for range longest {
		steps := at.steps()
		if len(steps) == 0 {
			return at.stuck(), trace
		}
		next := steps[dice.IntN(len(steps))]
		for tries := 0; next.rare && tries < 20; tries++ {
			next = steps[dice.IntN(len(steps))]
		}
		at, trace = next.next, append(trace, next.what)
		if broken := at.broken(); broken != "" {
			return broken, trace
		}
	}
	return "", nil
}

// told is an outcome for people.
func (o outcome) told() string {
	text := fmt.Sprintf("%d states, depth %d, exhausted: %t", o.states, o.depth, o.whole)
	if o.broken == "" {
		return text
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "%s\n%s, after:\n", text, o.broken)
	for i, what := range o.trace {
		fmt.Fprintf(&lines, "%4d  %s\n", i+1, what)
	}
	return lines.String()
}

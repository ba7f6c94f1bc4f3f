package judge

import (
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/linear"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// longest is how long the search for an order may take, for each key.
const longest = time.Minute

// A call is one step of an operation with the configuration, with what it led to.
type call struct {
	*operation

	step     history.Step // as it returned or, without an answer, as it was asked for
	returned *history.Event
}

// checkConfiguration demands that what was read and written is linearizable. That it cannot be found out counts against it.
func checkConfiguration(e *evidence, v *Verdict) {
	var all linear.History
	calls := e.calls()
	for _, c := range calls {
		if c.returned != nil && c.returned.Outcome == history.OK {
			v.Configuration++
		}
		if operation, tells := e.linearOf(c, calls); tells {
			all = append(all, operation)
		}
	}
	result, unexplained := all.Check(longest)
	for _, key := range unexplained {
		v.accusef(Configuration, "the history of a key is %s:\n%s", result, key)
	}
}

func (e *evidence) calls() []call {
	var calls []call
	for _, o := range e.operations {
		if o.Kind != history.Invoked {
			continue
		}
		returned := o.first(history.Returned)
		for i, step := range o.Steps {
			if returned != nil && i < len(returned.Steps) {
				step = returned.Steps[i]
			}
			calls = append(calls, call{o, step, returned})
		}
	}
	return calls
}

// outcome is what is known to have become of a call. A call without an answer is one whose process was killed.
func (c call) outcome() history.Outcome {
	if c.returned == nil {
		return history.Unknown
	}
	return c.returned.Outcome
}

func (c call) reads() bool { return c.step.Verb == history.Get || c.step.Verb == history.Look }

// linearOf is what the check of linearizability is to know of a call; tells is false if that is nothing.
func (e *evidence) linearOf(c call, calls []call) (operation linear.Operation, tells bool) {
	operation = linear.Operation{Caller: c.Client, Step: linearStep(c.step), Call: int64(c.At)}
	if c.step.Verb == history.Look {
		return operation, false
	}
	switch c.outcome() {
	case history.OK:
		operation.Return = int64(c.returned.At)
		operation.Effect = linear.Effect{Version: c.step.Version}
		if c.reads() {
			operation.Effect.Value = c.step.Value
		}
		return operation, true
	case history.Denied:
		// Of several steps one was refused, and nobody knows which; what never got there was refused by nobody.
		operation.Return, operation.Effect = int64(c.returned.At), linear.Effect{Refused: true}
		compared := c.returned.Reason == "PRECONDITION_FAILED" || c.returned.Reason == "KEY_NOT_FOUND"
		return operation, compared && !c.reads() && len(c.Steps) == 1
	}
	operation.Effect = linear.Effect{Unknown: true}
	operation.Return, tells = e.doneBy(c, calls)
	return operation, tells && !c.reads()
}

func linearStep(step history.Step) linear.Step {
	s := linear.Step{Key: step.Key, Value: step.Value, Verb: linear.Put}
	switch step.Verb {
	case history.Get, history.Look:
		s.Verb, s.Value = linear.Get, ""
	case history.Delete:
		s.Verb = linear.Delete
	}
	if step.Demand != nil && *step.Demand >= 0 {
		s.Demand.Version = *step.Demand
	} else if step.Demand != nil {
		s.Demand.Absence = true
	}
	return s
}

// doneBy looks in the ensemble's logs what became of a write without an answer: whether it may have been done, and by when.
// It was done when somebody was told of a later revision.
func (e *evidence) doneBy(c call, calls []call) (at int64, possible bool) {
	if e.log == nil || c.step.Verb != history.Put || c.step.Value == "" {
		return linear.Never, true
	}
	revision := e.revisionOf(c.step)
	if revision == 0 {
		return 0, false
	}
	at = linear.Never
	for _, other := range calls {
		if other.outcome() == history.OK && other.step.Revision > revision {
			at = min(at, int64(other.returned.At))
		}
	}
	return max(at, int64(c.At)), true
}

// revisionOf finds the transaction that put a value, of which no two are the same in a round.
func (e *evidence) revisionOf(step history.Step) int64 {
	for _, life := range e.keyLives()[step.Key] {
		for _, w := range life.Writes {
			if string(w.Data) == step.Value {
				return w.Zxid
			}
		}
	}
	return 0
}

// keyLives is the nodes of each key, in the order in which they were made.
func (e *evidence) keyLives() map[string][]*txnlog.Life {
	if e.keys == nil {
		e.keys = map[string][]*txnlog.Life{}
		root := e.settings.ConfigRoot + "/"
		for _, life := range e.lives {
			if len(life.Path) > len(root) && life.Path[:len(root)] == root {
				key := life.Path[len(root):]
				e.keys[key] = append(e.keys[key], life)
			}
		}
	}
	return e.keys
}

// checkFreshness demands that a sidecar never shows anything of a key that is older than what it has shown, or written,
// before. A sidecar that is started anew has shown nothing.
func checkFreshness(e *evidence, v *Verdict) {
	type view struct {
		key     string
		sidecar int
		run     int
	}
	spans := map[view][]span{}
	for _, c := range e.calls() {
		if c.outcome() != history.OK || c.step.Revision == 0 {
			continue
		}
		run := e.runOf(c.Sidecar, c.At)
		if run != e.runOf(c.Sidecar, c.returned.At) {
			continue
		}
		id := view{c.step.Key, c.Sidecar, run}
		spans[id] = append(spans[id], span{c.At, c.returned.At, c.step.Revision + 1, c.step.Revision, c.operation})
	}
	for id, shown := range spans {
		regressions(shown, func(before, after span) {
			v.accusef(Configuration, "sidecar %d showed %s revision %d of %s, and %s had seen %d through it",
				id.sidecar, after.who.name(), after.last, id.key, before.who.name(), before.last)
		})
	}
}

// runOf is how often the sidecar had been killed or stopped by then.
func (e *evidence) runOf(sidecar int, at history.Instant) int {
	target := sidecarTarget(sidecar)
	past, _ := slices.BinarySearch(e.ends[target], at)
	return past
}

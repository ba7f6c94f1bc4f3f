// Package linear says whether a history of the configuration is linearizable: whether the keys could have been read and
// written one step after the other, each at some instant between its call and its answer, so that everybody was told what
// they were told.
package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Step is what a caller asked of one key.
type Step struct {
	Key    string
	Verb   Verb
	Value  string // to put
	Demand Demand
}

// Verb is what a step does.
type Verb int

// The verbs.
const (
	Get Verb = iota
	Put
	Delete
)

// A Demand is what must be true of the key for the step to be done; the zero Demand demands nothing.
type Demand struct {
	Version int32 // that the key has, if not 0
	Absence bool  // that there is no such key
}

// An Effect is what a caller was told.
type Effect struct {
	Unknown bool   // it may have been done, at any time since
	Refused bool   // the key did not meet the demand, or there was none
	Value   string // read
	Version int32  // read or written; 0 if there is no key
}

// A register is the state of a key; without one, its version is 0.
type register struct {
	value   string
	version int32
}

func (r register) meets(d Demand) bool {
	return (d.Version == 0 || d.Version == r.version) && (!d.Absence || r.version == 0)
}

// after is the state after a step, and whether the step can have had this effect.
func (r register) after(s Step, e Effect) (register, bool) {
	switch {
	case s.Verb == Get:
		return r, e.Value == r.value && e.Version == r.version
	case s.Verb == Delete && r.version == 0, !r.meets(s.Demand):
		return r, e.Unknown || e.Refused
	case s.Verb == Delete:
		return register{}, e.Unknown || !e.Refused
	}
	written := register{s.Value, r.version + 1}
	return written, e.Unknown || !e.Refused && e.Version == written.version
}

// An Operation is a step with what it led to, from when to when.
type Operation struct {
	Caller       int
	Step         Step
	Effect       Effect
	Call, Return int64
}

// Never is when an operation returns that has no answer.
const Never = math.MaxInt64

// A History is what callers did and were told, in any order.
type History []Operation

// Result is what a check says. Unknown means that it took too long.
type Result = porcupine.CheckResult

// The results.
const (
	Linearizable = porcupine.Ok
	Illegal      = porcupine.Illegal
	Unknown      = porcupine.Unknown
)

// Check says whether some order of the steps explains all that was told. It gives up after some time for each key.
func (h History) Check(patience time.Duration) (result Result, unexplained []History) {
	result = Linearizable
	for _, key := range h.byKey() {
		switch key.check(patience) {
		case Illegal:
			result = Illegal
			unexplained = append(unexplained, key)
		case Unknown:
			if result == Linearizable {
				result = Unknown
			}
			unexplained = append(unexplained, key)
		}
	}
	return result, unexplained
}

var registers = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		next, possible := state.(register).after(input.(Step), output.(Effect))
		return possible, next
	},
}

func (h History) check(patience time.Duration) Result {
	operations := make([]porcupine.Operation, 0, len(h))
	for _, o := range h {
		operations = append(operations, porcupine.Operation{
			ClientId: o.Caller, Input: o.Step, Output: o.Effect, Call: o.Call, Return: o.Return,
		})
	}
	return porcupine.CheckOperationsTimeout(registers, operations, patience)
}

// byKey is a history for each key, in the order of calls.
func (h History) byKey() []History {
	all := slices.Clone(h)
	slices.SortStableFunc(all, func(a, b Operation) int {
		return cmp.Or(strings.Compare(a.Step.Key, b.Step.Key), cmp.Compare(a.Call, b.Call))
	})
	var keys []History
	for i, o := range all {
		if i == 0 || o.Step.Key != all[i-1].Step.Key {
			keys = append(keys, nil)
		}
		keys[len(keys)-1] = append(keys[len(keys)-1], o)
	}
	return keys
}

// String shows the operations, one a line.
func (h History) String() string {
	var text strings.Builder
	for _, o := range h {
		answered := fmt.Sprint(o.Return)
		if o.Return == Never {
			answered = "never"
		}
		fmt.Fprintf(&text, "%d–%s caller %d: %+v → %+v\n", o.Call, answered, o.Caller, o.Step, o.Effect)
	}
	return text.String()
}

package traces

import (
	"fmt"
	"strconv"
	"strings"
)

// A Trace is what is held against a model.
type Trace interface {
	records() []string // of TLA+, one of each step
}

// Module is a module in TLA+ that has the traces as Traces.
func Module[T Trace](all []T) string {
	var b strings.Builder
	b.WriteString("---- MODULE Traces ----\nTraces == <<\n")
	for i, each := range all {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.WriteString("<<\n" + strings.Join(each.records(), ",\n") + "\n>>")
	}
	b.WriteString("\n>>\n====\n")
	return b.String()
}

func (t LockTrace) records() (all []string) {
	for _, s := range t.Steps {
		all = append(all, fmt.Sprintf("[kind |-> %q, caller |-> %d, place |-> %d, token |-> %d]", s.Kind, s.Caller, s.Place, s.Token))
	}
	return all
}

func (t SessionTrace) records() (all []string) {
	for _, s := range t.Steps {
		all = append(all, fmt.Sprintf("[kind |-> %q, sent |-> %d, answered |-> %d, until |-> %d, clock |-> %d, "+
			"heartbeat |-> %s, before |-> %d, from |-> %d]", s.Kind, s.Sent, s.Answered, s.Until, s.Clock,
			strings.ToUpper(strconv.FormatBool(s.Heartbeat)), s.Before, s.From))
	}
	return all
}

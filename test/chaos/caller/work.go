package caller

import (
	"errors"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/store"
)

// guarded are the counters that a lock guards, in the order in which a caller reads and then writes them.
var guarded = []string{history.Fenced, history.Naive}

// work adds one to the counters that the lock guards, as an application does that believes in its lock: it looks at the
// lock, reads, and writes. Whoever is stopped in between writes what has become wrong.
func (h *hold) work() {
	if !h.look() {
		return
	}
	token := h.lock.FencingToken()
	values := make([]int64, len(guarded))
	for i, name := range guarded {
		value, err := h.caller.stores.Read(name, h.name, token)
		if err != nil {
			return
		}
		values[i] = value + 1
	}
	for i, name := range guarded {
		event := history.Event{Store: name, Lock: h.name, Token: token, Value: values[i]}
		event.Kind = history.Acting
		h.caller.note(h.op, event)
		event.Kind, event.Outcome = history.Acted, outcome(h.caller.stores.Write(name, h.name, token, values[i]))
		h.caller.note(h.op, event)
	}
}

// outcome is what became of a write.
func outcome(err error) history.Outcome {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, store.ErrRefused):
		return history.Denied
	default:
		return history.Unknown
	}
}

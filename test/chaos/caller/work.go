package caller

import (
	"context"
	"errors"
	"strconv"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/store"
)

// guarded are the counters that a lock guards, in the order in which a caller reads and then writes them.
var guarded = []string{history.Fenced, history.Naive}

// work adds one to the counters that the lock guards, as an application does that believes in its lock: it looks at the
// lock, reads, and writes. Whoever is stopped in between writes what has become wrong.
func (h *hold) work() {
	if h.act() {
		h.put(h.lock.FencingToken())
	}
}

// act says whether the caller believed in its lock when it began.
func (h *hold) act() bool {
	if !h.look() {
		return false
	}
	token := h.lock.FencingToken()
	values := make([]int64, len(guarded))
	for i, name := range guarded {
		value, err := h.caller.stores.Read(name, h.name, token)
		if err != nil {
			return true
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
	return true
}

// guardedWrites is how often a caller writes under its lock while it works, unless it fails.
const guardedWrites = 12

// put writes the token to a key of the configuration that the lock guards, and now and then to one that it does not, as a program does that
// has not looked at its lock for a while. The ensemble's logs tell whether the lock was held then.
func (h *hold) put(token int64) {
	lock, ours := h.lock.(*sidekeeper.Lock)
	if !ours {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	value, config := []byte(strconv.FormatInt(token, 10)), h.caller.library.Config()
	for range guardedWrites { // what becomes of them stands in the logs
		if _, err := config.Put(lock.Guard(ctx), history.GuardedKey(h.name), value); err != nil {
			break
		}
	}
	if h.caller.dice.IntN(4) == 0 {
		_, _ = config.Put(ctx, history.UnguardedKey(h.name), value)
		h.join(lock.Guard(ctx), string(value))
	}
}

// join becomes a member that is named by the token, and changes what it shows, both guarded by the lock.
func (h *hold) join(ctx context.Context, token string) {
	joined, err := h.caller.library.Join(ctx, history.GuardedGroup(h.name), token, sidekeeper.JoinOptions{})
	if err != nil {
		return
	}
	_ = joined.Update(ctx, map[string]string{"changed": "once"})
	leaving, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	joined.Leave(leaving) //nolint:errcheck // it ends with its lease
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

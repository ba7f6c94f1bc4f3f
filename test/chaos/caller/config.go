package caller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// keys is how many the callers of W6 share, and watchers how many processes watch them.
const (
	keys     = 10
	watchers = 6
)

// keepKeys reads and writes keys; the second caller of a process watches them instead.
func keepKeys(ctx context.Context, c *caller) {
	if c.index == 1 {
		c.watchKeys(ctx)
		return
	}
	known := map[string]int32{}
	for turn := 0; pause(ctx, c.between(30*time.Millisecond, 150*time.Millisecond)); turn++ {
		c.calm(ctx, c.turn(known, fmt.Sprintf("%d.%d", c.order.Client, turn)))
	}
}

func (c *caller) key() string { return c.name("key/%d", c.dice.IntN(keys)) }

// turn does one thing to one key or to two. Known are the versions that the caller has seen.
func (c *caller) turn(known map[string]int32, value string) bool {
	step := history.Step{Key: c.key(), Verb: history.Get}
	switch c.dice.IntN(10) {
	case 0:
		step.Verb = history.Delete
	case 1, 2:
		step.Verb, step.Value = history.Put, value
	case 3, 4:
		step.Verb, step.Value = history.Put, value
		if version, seen := known[step.Key]; seen {
			step.Demand = &version
		}
	case 5:
		return c.commit(value)
	case 6, 7:
		step.Verb = history.Look
	}
	done, ok := c.invoke(step)
	if done.Verb == history.Get && done.Version > 0 {
		known[done.Key] = done.Version
	}
	return ok
}

// invoke takes one step, and says whether the sidecar has answered.
func (c *caller) invoke(step history.Step) (history.Step, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	op := c.begin(history.Event{Kind: history.Invoked, Steps: []history.Step{step}})
	entry, err := c.do(ctx, step)
	if err == nil {
		step.Version, step.Revision = entry.Version, entry.Revision
		if step.Verb == history.Get || step.Verb == history.Look {
			step.Value = string(entry.Value)
		}
	}
	reads := step.Verb == history.Get || step.Verb == history.Look
	if reads && errors.Is(err, sidekeeper.ErrKeyNotFound) {
		step.Missing, err = true, nil
	}
	return step, c.noteReturn(op, []history.Step{step}, err)
}

func (c *caller) do(ctx context.Context, step history.Step) (sidekeeper.Entry, error) {
	config := c.library.Config()
	var demands []sidekeeper.Precondition
	if step.Demand != nil {
		demands = append(demands, sidekeeper.IfVersion(*step.Demand))
	}
	switch step.Verb {
	case history.Put:
		return config.Put(ctx, step.Key, []byte(step.Value), demands...)
	case history.Delete:
		return sidekeeper.Entry{}, config.Delete(ctx, step.Key, demands...)
	case history.Look:
		return config.Get(ctx, step.Key)
	default:
		return config.GetLinearizable(ctx, step.Key)
	}
}

// commit writes two keys at once.
func (c *caller) commit(value string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	first := c.dice.IntN(keys - 1)
	var all sidekeeper.Commit
	var steps []history.Step
	for i := range 2 {
		key := c.name("key/%d", first+i)
		all.Put(key, []byte(value))
		steps = append(steps, history.Step{Key: key, Verb: history.Put, Value: value})
	}
	op := c.begin(history.Event{Kind: history.Invoked, Steps: steps})
	entries, err := c.library.Config().Commit(ctx, &all)
	steps = append([]history.Step(nil), steps...)
	for i, entry := range entries {
		steps[i].Version, steps[i].Revision = entry.Version, entry.Revision
	}
	return c.noteReturn(op, steps, err)
}

// noteReturn notes how a call has ended, and says whether the sidecar has answered.
func (c *caller) noteReturn(op int64, steps []history.Step, err error) bool {
	event := ending(err)
	event.Kind, event.Steps = history.Returned, steps
	switch {
	case err == nil:
		event.Outcome, event.Code = history.OK, ""
	case certainlyNotDone(err):
		event.Outcome = history.Denied
	default:
		event.Outcome = history.Unknown
	}
	c.note(op, event)
	return event.Outcome != history.Unknown
}

func certainlyNotDone(err error) bool {
	for _, each := range []error{
		sidekeeper.ErrPreconditionFailed, sidekeeper.ErrKeyNotFound, sidekeeper.ErrKeyHasChildren,
		sidekeeper.ErrEnsembleUnreachable, sidekeeper.ErrEnsembleDenied,
	} {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}

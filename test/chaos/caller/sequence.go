package caller

import (
	"context"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// The sequences of a round, below its prefix. They must have been made before.
const (
	StrictSequence  = "strict"
	RelaxedSequence = "relaxed"
)

// callTime is how long a call may take that is not a stream.
const callTime = 3 * time.Second

// takeNumbers takes numbers from the sequences, one or several at a time.
func takeNumbers(ctx context.Context, c *caller) {
	for pause(ctx, c.between(20*time.Millisecond, 100*time.Millisecond)) {
		if c.dice.IntN(2) == 0 {
			c.calm(ctx, c.take(StrictSequence, history.Strict, 1))
		} else {
			c.calm(ctx, c.take(RelaxedSequence, history.Relaxed, 1+c.dice.Int32N(20)))
		}
	}
}

// take is not cut short when callers are to stop: then nobody would know what became of it.
func (c *caller) take(short, ordering string, count int32) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	name := c.name("%s", short)
	sequence := c.library.Sequence(name)
	if ordering == history.Relaxed {
		sequence = sequence.Relaxed()
	}
	op := c.begin(history.Event{Kind: history.Asked, Sequence: name, Count: int64(count), Ordering: ordering})
	numbers, err := sequence.NextRange(ctx, count)
	if err != nil {
		event := ending(err)
		event.Kind = history.Failed
		c.note(op, event)
		return false
	}
	c.note(op, history.Event{
		Kind: history.Got, First: numbers.First, Count: numbers.Last - numbers.First + 1, Incarnation: numbers.Incarnation,
	})
	return true
}

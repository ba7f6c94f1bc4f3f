package judge

import (
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// Clocks puts times of the wall clock, which servers log, on the clock that processes share. The wall clock may have been
// set in between: then it is said to have been somewhere between all that was seen.
type clocks struct {
	known       bool
	least, most time.Duration           // how far the wall clock was ahead
	ahead       map[int64]time.Duration // of that, how far the leader's was, by its epoch
}

func (c *clocks) add(event *history.Event) {
	ahead := time.Duration(event.Wall - int64(event.At))
	if !c.known {
		c.known, c.least, c.most = true, ahead, ahead
	}
	c.least, c.most = min(c.least, ahead), max(c.most, ahead)
}

// earliest is when the leader took a transaction up, at the earliest. Nobody can have seen its effect before.
func (c *clocks) earliest(s txnlog.Stamp) history.Instant {
	return history.Instant(sinceEpoch(s.Time) - c.ahead[epochOf(s)] - c.most)
}

// latest is the same at the latest. Servers log whole milliseconds.
func (c *clocks) latest(s txnlog.Stamp) history.Instant {
	return history.Instant(sinceEpoch(s.Time) + time.Millisecond - c.ahead[epochOf(s)] - c.least)
}

// epochOf is the epoch of the leader that took a transaction up.
func epochOf(s txnlog.Stamp) int64 { return s.Zxid >> 32 }

func sinceEpoch(t time.Time) time.Duration { return t.Sub(time.UnixMilli(0)) }

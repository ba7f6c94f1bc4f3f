package service

import "time"

// countdown is how often a suspended lease is told how long it still has.
const countdown = time.Second

// A connectivity follows whether a lease's session hears of the ensemble.
type connectivity struct {
	session   Session
	suspended bool
	changed   <-chan struct{}
	ticker    *time.Ticker
	tick      <-chan time.Time // nil unless suspended
}

// unheard never changes.
var unheard = &connectivity{}

func newConnectivity(session Session) *connectivity {
	c := &connectivity{session: session}
	c.look()
	return c
}

// look reads the state again and says whether there is news: it has changed, or contact is missing.
func (c *connectivity) look() bool {
	before := c.suspended
	c.suspended, c.changed = c.session.Suspended()
	c.stop()
	if c.suspended {
		c.ticker = time.NewTicker(countdown)
		c.tick = c.ticker.C
	}
	return before || c.suspended
}

func (c *connectivity) stop() {
	if c.ticker != nil {
		c.ticker.Stop()
		c.ticker, c.tick = nil, nil
	}
}

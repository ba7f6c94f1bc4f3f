package zookeeper

import "time"

// An instant is a reading of a clock that goes on while the machine is suspended, as the ensemble's does; Go's own
// monotonic clock does not. In nanoseconds.
type instant int64

func (i instant) add(d time.Duration) instant { return i + instant(d) }

// since is how long it is from other to i.
func (i instant) since(other instant) time.Duration { return time.Duration(i - other) }

// now reads the session's clock.
func (s *Session) now() instant { return instant(s.client.config.Clock()) }

// upTo is a random duration below limit.
func (c *Client) upTo(limit time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(int64(limit)))
}

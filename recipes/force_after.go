package recipes

import (
	"cmp"
	"time"
)

// ForceAfter is for how long a contender's or a member's sidecar is left to end it, before it is ended from outside.
type ForceAfter struct {
	After   *time.Duration // nil: until its session must have expired
	Timeout time.Duration  // of sessions whose nodes do not tell theirs
	Tick    time.Duration  // how much later than its timeout the ensemble may expire a session
}

// LongestTimeout bounds what a session's timeout may be, and so what is believed of what a node tells about its session: less would end
// a holder from outside while it may count on its lock.
const LongestTimeout = 24 * time.Hour

// with is for how long one is left to it that tells this of its session's timeout; 0 tells nothing.
func (p ForceAfter) with(told time.Duration) time.Duration {
	if p.After != nil {
		return *p.After
	}
	return cmp.Or(told, p.Timeout) + p.Tick
}

// toldTimeout reads what a node tells about its session's timeout.
func toldTimeout(milliseconds int64) time.Duration {
	return time.Duration(max(0, min(milliseconds, LongestTimeout.Milliseconds()))) * time.Millisecond
}

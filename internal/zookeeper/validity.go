package zookeeper

import "time"

// A Validity is for how long sessions of one timeout are certainly alive, by the formula of the package comment, while heartbeats
// are answered at once. What answers take comes off.
type Validity struct {
	Most    time.Duration // what is left just after a heartbeat, at best
	Least   time.Duration // what is left just before the next one, at worst
	Silence time.Duration // a loss of contact that is no longer ends no session, whenever it begins

	interval time.Duration
}

// Validity is what sessions of this timeout have.
func (c *Config) Validity(timeout time.Duration) Validity {
	p, interval := c.proof(timeout), c.interval(timeout)
	shortest, longest := spread(interval, -jitter), spread(interval, jitter)
	youngest, oldest := p.ages(shortest, longest)
	v := Validity{interval: interval, Most: max(0, p.lifetime()-youngest), Least: max(0, p.lifetime()-oldest-longest)}
	v.Silence = max(0, v.Least-timeToReturn(timeout))
	return v
}

// Short says that a session may be lost before anybody is told that contact is, which takes an interval without an answer.
func (v Validity) Short() bool { return v.Silence < v.interval }

// ages are how long before a heartbeat, at best and at worst, the one was sent that counts when it is answered: the newest one that
// is older by the slack than the one before it, or with plain reads than itself.
func (p *proof) ages(shortest, longest time.Duration) (youngest, oldest time.Duration) {
	few, many := int64((p.slack+longest-1)/longest), int64(p.slack/shortest+1) // as many intervals as reach over the slack
	youngest, oldest = max(p.slack, shortest*time.Duration(few)), min(p.slack+longest, longest*time.Duration(many))
	if p.static {
		return youngest, oldest
	}
	return youngest + shortest, oldest + longest
}

// unheard is for how long a session that sleeps takes its server for one that reaches the leader, from when the newest transaction was sent that
// was committed through it. What remains of the timeout, since the leader has heard of the session last, is for finding out and for coming back
// over another server. It is no less than the sidecar's own session takes between two heartbeats, and half as long again.
func (c *Config) unheard(timeout time.Duration) time.Duration {
	interval := c.interval(timeout)
	age := spread(interval*3/2, jitter) + c.proof(timeout).slack // of the newest read that was reported to the leader, at worst
	findsOut := interval/patienceShare + interval*3/2            // see findsOut and givesUpAt
	left := time.Duration(float64(timeout)*(1-2*clockRateError)) - age - findsOut - timeToReturn(timeout)
	return max(left, interval*8/5)
}

// timeToReturn is what a session takes to be proved again, at worst, once there is contact: a server is tried until then that is
// not reached, and the longest pause between two attempts follows. See connect and backOff.
func timeToReturn(timeout time.Duration) time.Duration {
	return min(time.Second, max(time.Second/2, timeout/6)) + timeout/8
}

// spread is an interval that is longer by this part of it.
func spread(interval time.Duration, by float64) time.Duration {
	return time.Duration(float64(interval) * (1 + by))
}

// shortestSafe is the shortest timeout, in whole tenths of a second, that can be kept proved, or 0 if none of a day is.
func (c *Config) shortestSafe() time.Duration {
	const step, longest = 100 * time.Millisecond, 24 * time.Hour
	for timeout := step; timeout <= longest; timeout += step {
		if p := c.proof(timeout); p.sustainable(c.interval(timeout)) {
			return timeout
		}
	}
	return 0
}

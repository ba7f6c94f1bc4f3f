package zookeeper

import (
	"slices"
	"time"
)

// A company is sessions that prove themselves together. The first of them is the prober, whose heartbeats prove them all and ask for the places
// of all; what the others send are plain reads. See the package comment. It is a machine as a life is.
type company[M comparable] struct {
	members  []M
	interval time.Duration // between the heartbeats of each
	patience time.Duration // from when a heartbeat of the prober is half late until contact is late for all

	proved   instant // when a heartbeat was answered that proved the others; 0 if none was
	passed   bool    // a heartbeat of the prober is half late, and none was answered since
	doubtsAt instant // when contact is late for all; never if it is already, or nothing has passed
	asksAt   instant // when the prober is summoned, since the one before has left; never if it need not
}

func newCompany[M comparable](interval, patience time.Duration) company[M] {
	return company[M]{interval: interval, patience: patience, doubtsAt: never, asksAt: never}
}

// roleOf says whether a member is the prober of others, whether there are others, and whether one of them has proved it lately, and goes on with
// it.
func (c *company[M]) roleOf(member M, now instant) (leads, accompanied, proved bool) {
	first, accompanied := c.members[0] == member, len(c.members) > 1
	return first && accompanied, accompanied, accompanied && !first && c.proved != 0 && now.since(c.proved) < 2*c.interval
}

func (c *company[M]) isLedBy(member M) bool { return len(c.members) > 1 && c.members[0] == member }

func (c *company[M]) enter(member M) { c.members = append(c.members, member) }

// leave takes a member out. When the next one proves the others, it does so in time: once for all that leave until then.
func (c *company[M]) leave(member M) {
	i := slices.Index(c.members, member)
	c.members = slices.Delete(c.members, i, i+1)
	if len(c.members) < 2 {
		c.settle()
	}
	if i == 0 && len(c.members) > 0 {
		c.asksAt = c.proved.add(c.interval / 2)
	}
}

// pass makes the next member the prober if this one is, since no answer comes to its heartbeat, or none that counts. If none comes to another's
// either, contact is late for all after a while.
func (c *company[M]) pass(member M, now instant) (passed bool) {
	if !c.isLedBy(member) {
		return false
	}
	c.members = append(c.members[1:], member)
	if !c.passed {
		c.passed, c.doubtsAt = true, now.add(c.patience)
	}
	return true
}

// accepts says whether a member proves the others by a heartbeat: the prober, or one that was it when its heartbeat became late.
func (c *company[M]) accepts(member M, shown sharedHeartbeat, now instant) bool {
	if len(c.members) == 0 || c.members[0] != member && !c.passed {
		return false
	}
	c.settle()
	if shown.sent.since(shown.of) < 2*c.interval {
		c.proved = now
	}
	return true
}

// settle ends what has passed.
func (c *company[M]) settle() { c.passed, c.doubtsAt = false, never }

// nextTick is when something is due next.
func (c *company[M]) nextTick() instant { return min(c.doubtsAt, c.asksAt) }

// tick says what is due: that the prober is summoned, or that contact is late for all.
func (c *company[M]) tick(now instant) (summons, doubts bool) {
	if summons = now >= c.asksAt && len(c.members) > 0; now >= c.asksAt {
		c.asksAt = never
	}
	if doubts = now >= c.doubtsAt; doubts {
		c.doubtsAt = never
	}
	return summons, doubts
}

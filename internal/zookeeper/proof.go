package zookeeper

import "time"

// clockRateError is how far from true the rate of a machine's clock may be, sidecar and ensemble alike.
const clockRateError = 0.01

// pingLateness bounds by how much the leader's pings may come later than every tick/2 while it commits: its thread sleeps so long,
// and wakes, takes the leader's lock and queues the pings besides. A pause of the whole server is not counted: what was sent during
// it is committed a round trip to a quorum after it, and the ping that is due takes a thread that wakes.
const pingLateness = 100 * time.Millisecond

// An exchange is a request of one session on one connection that the server has answered.
type exchange struct {
	sent     instant
	answered instant
}

// A proof knows until when a session is certainly alive. It is the formula of the package comment, and does nothing else:
// no clock, no lock, no network.
type proof struct {
	timeout time.Duration // negotiated
	margin  time.Duration // kept for late timers and for ending the streams
	slack   time.Duration // how much older than Q an answer must be to have been passed on to the leader
	static  bool          // heartbeats are plain reads, which no quorum has seen

	attached  exchange   // the handshake of the current connection; it extends the session once its leader has committed
	exchanges []exchange // requests answered on the current connection, oldest first, as few as are needed
	newest    exchange   // the newest transaction of the current connection that counts
	before    exchange   // the one before
	deadline  instant
}

// opened starts the proof with the handshake that made the session, which is a transaction: the leader's timer for the
// session started while it was under way.
func (p *proof) opened(handshake exchange) {
	p.extend(handshake.sent)
	p.reattached(handshake)
}

// reattached forgets the requests of the old connection, whose server may have died with what it had not passed on. The
// deadline they gave stands.
func (p *proof) reattached(handshake exchange) {
	p.attached, p.exchanges, p.newest, p.before = handshake, p.exchanges[:0], exchange{}, exchange{}
	if p.static {
		p.exchanges = append(p.exchanges, handshake)
	}
}

// answeredHeartbeat counts a committed request of the current connection, which with static proof is a plain read. One that was under way
// together with the newest that counts shows no more than that the session was active.
func (p *proof) answeredHeartbeat(heartbeat exchange) {
	p.answeredRequest(heartbeat)
	if heartbeat.sent < p.newest.answered {
		return
	}
	p.before, p.newest = p.newest, heartbeat
	if since, ok := p.activeSince(); ok {
		p.extend(since)
	}
}

// mostExchanges is how many requests are kept, whose times are so far apart that they reach over the slack several times.
const mostExchanges = 64

// answeredRequest notes that the session was active on the current connection, whatever it asked for.
func (p *proof) answeredRequest(request exchange) {
	last := len(p.exchanges) - 1
	switch {
	case p.static:
	case last >= 0 && request.sent < p.exchanges[last].sent.add(4*p.slack/mostExchanges):
		return
	case last+1 == mostExchanges:
		p.forget(1)
	}
	p.exchanges = append(p.exchanges, request)
}

// activeSince returns the newest instant at which the session was certainly active in the leader's eyes; see the package
// comment for why it is this one.
func (p *proof) activeSince() (since instant, ok bool) {
	if p.static {
		return p.answeredBefore(p.newest.sent.add(-p.slack))
	}
	if p.before.answered == 0 {
		return p.attached.sent, true
	}
	since, ok = p.answeredBefore(p.before.sent.add(-p.slack))
	if !ok {
		return p.attached.sent, true
	}
	return since, true
}

// borrow counts a heartbeat of another session with a connection to the same server: its newest but one was sent then, and the handshake of its
// connection was answered at from. It returns the request of this session that is certain to count by that, if one does that was sent since.
func (p *proof) borrow(then, from instant) (request exchange, ok bool) {
	sent, ok := p.answeredBefore(then.add(-p.slack))
	if !ok || sent <= from {
		return exchange{}, false
	}
	p.extend(sent)
	return p.exchanges[0], true
}

// answeredBefore returns when the newest of the exchanges answered by then was sent, and forgets those before it.
func (p *proof) answeredBefore(then instant) (sent instant, ok bool) {
	keep := 0
	for i, request := range p.exchanges {
		if request.answered > then {
			break
		}
		sent, ok, keep = request.sent, true, i
	}
	p.forget(keep)
	return sent, ok
}

func (p *proof) extend(since instant) {
	if until := since.add(p.lifetime()); until > p.deadline {
		p.deadline = until
	}
}

// reserve is how much sooner than after its timeout the session is taken for over.
func (p *proof) reserve() time.Duration { return p.timeout - p.lifetime() }

// lifetime is for how long something certain counts.
func (p *proof) lifetime() time.Duration {
	return time.Duration(float64(p.timeout)*(1-2*clockRateError)) - p.margin
}

// lateness is by how much what a heartbeat has found may have been overtaken when it was sent: a transaction finds what is
// committed, a plain read what its server has heard of.
func (p *proof) lateness() time.Duration {
	if p.static {
		return p.slack
	}
	return 0
}

// forget drops the requests that are older than the one at keep.
func (p *proof) forget(keep int) {
	p.exchanges = append(p.exchanges[:0], p.exchanges[keep:]...)
}

// sustainable says whether a session of this timeout can be kept proved by heartbeats every interval: in the worst case
// the newest heartbeat that counts was sent two intervals and the slack before the newest answered one, and contact may be
// missed for another two intervals before the lease would be lost in vain.
func (p *proof) sustainable(interval time.Duration) bool {
	return p.lifetime() > 4*spread(interval, jitter)+p.slack
}

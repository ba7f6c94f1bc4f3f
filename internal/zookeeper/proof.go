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
	exchanges []exchange // the heartbeats answered on the current connection, oldest first, as few as are needed
	deadline  instant
}

// opened starts the proof with the handshake that made the session, which is a transaction: the leader's timer for the
// session started while it was under way.
func (p *proof) opened(handshake exchange) {
	p.extend(handshake.sent)
	p.reattached(handshake)
}

// reattached forgets the heartbeats of the old connection, whose server may have died with what it had not passed on. The
// deadline they gave stands.
func (p *proof) reattached(handshake exchange) {
	p.attached, p.exchanges = handshake, p.exchanges[:0]
	if p.static {
		p.exchanges = append(p.exchanges, handshake)
	}
}

// answeredHeartbeat counts a committed heartbeat of the current connection, sent after the one before was answered.
func (p *proof) answeredHeartbeat(heartbeat exchange) {
	p.exchanges = append(p.exchanges, heartbeat)
	if since, ok := p.vouched(); ok {
		p.extend(since)
	}
}

// vouched returns the newest instant at which the session was certainly active in the leader's eyes; see the package
// comment for why it is this one.
func (p *proof) vouched() (since instant, ok bool) {
	newest := len(p.exchanges) - 1
	if p.static {
		return p.answeredBefore(p.exchanges[newest].sent.add(-p.slack))
	}
	if newest == 0 {
		return p.attached.sent, true
	}
	since, ok = p.answeredBefore(p.exchanges[newest-1].sent.add(-p.slack))
	if !ok {
		return p.attached.sent, true
	}
	return since, true
}

// answeredBefore returns when the newest of the exchanges answered by then was sent, and forgets those before it.
func (p *proof) answeredBefore(then instant) (sent instant, ok bool) {
	keep := 0
	for i, heartbeat := range p.exchanges {
		if heartbeat.answered > then {
			break
		}
		sent, ok, keep = heartbeat.sent, true, i
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

// forget drops the heartbeats that are older than the one at keep: they cannot extend the deadline any more.
func (p *proof) forget(keep int) {
	p.exchanges = append(p.exchanges[:0], p.exchanges[keep:]...)
}

// sustainable says whether a session of this timeout can be kept proved by heartbeats every interval: in the worst case
// the newest heartbeat that counts was sent two intervals and the slack before the newest answered one, and contact may be
// missed for another two intervals before the lease would be lost in vain.
func (p *proof) sustainable(interval time.Duration) bool {
	return p.lifetime() > 4*spread(interval, jitter)+p.slack
}

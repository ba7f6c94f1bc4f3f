//go:build !mutant_last_answer

package zookeeper

// readsProve says whether heartbeats are plain reads even where the ensemble's word is asked for. They are not.
const readsProve = false

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

package judge

import (
	"maps"
	"slices"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// checkTruth compares what callers were granted with what the ensemble did.
func checkTruth(e *evidence, v *Verdict) {
	if e.log == nil {
		return
	}
	queues := e.queues()
	for _, lock := range slices.Sorted(maps.Keys(queues)) {
		for _, p := range queues[lock] {
			if p.owned() {
				v.Epochs++
			}
		}
	}
	holders := map[*place]*attempt{}
	for _, a := range e.attempts {
		if a.granted != nil {
			e.checkGrant(v, a, queues[a.Lock], holders)
		}
	}
}

// checkGrant looks at the place behind a grant. Holders are those whose grants were looked at before.
func (e *evidence) checkGrant(v *Verdict, a *attempt, queue []*place, holders map[*place]*attempt) {
	token := a.granted.Token
	p := placeOf(token, queue)
	if p == nil {
		v.accusef(Truth, "%s was granted %s with token %d, with which nobody took a place in its queue", a.name(), a.Lock, token)
		return
	}
	if other := holders[p]; other != nil {
		v.accusef(Truth, "%s and %s were granted %s with the same token %d", a.name(), other.name(), a.Lock, token)
	}
	holders[p] = a
	e.checkOwner(v, a, p)
	e.checkTurn(v, a, p)
	e.checkOutliving(v, a, p)
}

func placeOf(token int64, queue []*place) *place {
	for _, p := range queue {
		if p.Made.Zxid == token {
			return p
		}
	}
	return nil
}

func (e *evidence) checkOwner(v *Verdict, a *attempt, p *place) {
	owner := ownerOf(p.Life)
	switch {
	case (p.Owner == 0) != (a.Rest > 0):
		v.accusef(Truth, "%s was granted %s with a node that no session owns, or a claim with a session's: %s", a.name(), a.Lock, p.Path)
	case p.mode != a.Mode:
		v.accusef(Truth, "%s was granted %s as %s with a place for %s: %s", a.name(), a.Lock, a.Mode, p.mode, p.Path)
	case owner != "" && owner != history.Owner(a.Client, a.Op):
		v.accusef(Truth, "%s was granted %s with the place of client %s: %s", a.name(), a.Lock, owner, p.Path)
	}
}

// checkTurn demands that nobody was before the place any more when the caller was told of the grant.
func (e *evidence) checkTurn(v *Verdict, a *attempt, p *place) {
	if !p.owned() {
		v.accusef(Truth, "%s was granted %s with token %d, whose turn never came", a.name(), a.Lock, a.granted.Token)
		return
	}
	if early := e.clocks.earliest(p.head).Since(a.granted.At); early > 0 {
		v.accusef(Truth, "%s was granted %s with token %d at least %v before its turn came at zxid %#x",
			a.name(), a.Lock, a.granted.Token, early, p.head.Zxid)
	}
}

// checkOutliving demands that nobody is sure of a lock when the ensemble has decided that its session is dead.
func (e *evidence) checkOutliving(v *Verdict, a *attempt, p *place) {
	if !p.Expired || !a.believed {
		return
	}
	if after := a.to.Since(e.clocks.latest(p.Gone)); after > 0 {
		v.accusef(Truth, "%s was sure of %s at least %v after its session had expired at zxid %#x",
			a.name(), a.Lock, after, p.Gone.Zxid)
	}
}

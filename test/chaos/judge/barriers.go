package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// A barrier is what its callers have seen, and the nodes of it that the ensemble's logs show.
type barrier struct {
	*evidence

	verdict  *Verdict
	calls    []*operation
	entries  []*attempt
	nodes    []*txnlog.Life // of the barrier itself
	ready    []*txnlog.Life // what opens it
	entrants []*txnlog.Life // in the order in which they came
}

// checkBarriers demands of barriers that nobody passes one that stands, and of double barriers that callers enter them together and leave them
// together, by the ensemble's logs.
func checkBarriers(e *evidence, v *Verdict) {
	if e.log == nil {
		return
	}
	barriers := map[string]*barrier{}
	for _, o := range e.operations {
		b := barriers[o.Barrier]
		switch {
		case o.Barrier == "":
			continue
		case b == nil:
			b = e.barrier(v, o.Barrier)
			barriers[o.Barrier] = b
		}
		if o.Kind != history.Entering {
			b.calls = append(b.calls, o)
			continue
		}
		a := e.newAttempt(o)
		a.granted = o.first(history.Entered)
		b.entries = append(b.entries, a)
	}
	for _, name := range slices.Sorted(maps.Keys(barriers)) {
		b := barriers[name]
		b.checkCalls()
		b.checkChanges()
		b.checkEntries()
	}
}

func (e *evidence) barrier(v *Verdict, name string) *barrier {
	b := &barrier{evidence: e, verdict: v}
	root := path(e.settings.BarrierRoot, name)
	for _, life := range e.lives {
		child, below := strings.CutPrefix(life.Path, root+"/")
		switch {
		case life.Path == root:
			b.nodes = append(b.nodes, life)
		case below && child == "ready":
			b.ready = append(b.ready, life)
		case below:
			b.entrants = append(b.entrants, life)
		}
	}
	return b
}

func (b *barrier) accusef(format string, arguments ...any) {
	b.verdict.accusef(Barriers, format, arguments...)
}

// succeeded is when an operation has ended well; 0 if it has not.
func (o *operation) succeeded() history.Instant {
	if ended := o.first(history.Ended); ended != nil && ended.Code == "OK" {
		return ended.At
	}
	return 0
}

// checkCalls looks at those who set the barrier, removed it or waited at it.
func (b *barrier) checkCalls() {
	for _, o := range b.calls {
		done := o.succeeded()
		switch {
		case o.Kind == history.Setting && done != 0 && !b.stoodOnce(o.At, done):
			b.accusef("%s was told that %s is set, and it was not", o.name(), o.Barrier)
		case o.Kind != history.Setting && done != 0 && b.stoodAllTheTime(o.At, done):
			b.accusef("%s passed %s or removed it, which stood from %v to %v", o.name(), o.Barrier, o.At, done)
		}
		if o.Kind == history.Awaiting {
			b.checkWait(o)
			if done != 0 {
				b.verdict.Passed++
			}
		}
	}
}

// stoodOnce says whether the barrier may have stood at some moment of a time.
func (b *barrier) stoodOnce(from, to history.Instant) bool {
	return slices.ContainsFunc(b.nodes, func(node *txnlog.Life) bool {
		return b.clocks.earliest(node.Made) <= to && (!node.Gone.Happened() || b.clocks.latest(node.Gone) >= from)
	})
}

// stoodAllTheTime says whether the barrier certainly stood all the time. Between one that was removed and one that was set anew it did not.
func (b *barrier) stoodAllTheTime(from, to history.Instant) bool {
	return slices.ContainsFunc(b.nodes, func(node *txnlog.Life) bool {
		return b.clocks.latest(node.Made) < from && (!node.Gone.Happened() || b.clocks.earliest(node.Gone) > to)
	})
}

// checkWait demands that who waits goes on when the barrier is not set.
func (b *barrier) checkWait(o *operation) {
	over := o.over()
	if o.end != 0 || over == 0 {
		return
	}
	for _, unset := range b.unset() {
		since, until := max(o.At, unset.from), min(over, unset.to)
		if since < until && until > b.deadline(since, b.settings.Patience) {
			b.accusef("%s waited at %s for %v, which was not set", o.name(), o.Barrier, until.Since(since))
		}
	}
}

// unset is from when to when the barrier was not set.
func (b *barrier) unset() (all []window) {
	since := history.Instant(0)
	for _, node := range b.nodes {
		all = append(all, window{since, b.clocks.earliest(node.Made)})
		since = b.quiet
		if node.Gone.Happened() {
			since = b.clocks.latest(node.Gone)
		}
	}
	return append(all, window{since, b.quiet})
}

// checkChanges demands that a barrier stands from when a caller sets it until one removes it. A change that did not succeed may be carried out
// later; one that did, may not.
func (b *barrier) checkChanges() {
	if len(b.entries) > 0 {
		return // a double barrier, whose node comes and goes with those who stand there
	}
	for _, node := range b.nodes {
		if !b.mayBe(history.Setting, node.Made) {
			b.accusef("%s came at zxid %#x, though no caller was setting it", node.Path, node.Made.Zxid)
		}
		if node.Gone.Happened() && !b.mayBe(history.Removing, node.Gone) {
			b.accusef("%s went at zxid %#x, though no caller was removing it", node.Path, node.Gone.Zxid)
		}
	}
}

// mayBe says whether a transaction may be what a call of this kind has asked for.
func (b *barrier) mayBe(kind history.Kind, change txnlog.Stamp) bool {
	return slices.ContainsFunc(b.calls, func(o *operation) bool {
		done := o.succeeded()
		return o.Kind == kind && o.At <= b.clocks.latest(change) && (done == 0 || done >= b.clocks.earliest(change))
	})
}

// checkEntries looks at those who entered.
func (b *barrier) checkEntries() {
	rounds := map[int64][]*attempt{}
	var spans []span
	for _, a := range b.entries {
		if a.granted != nil {
			b.verdict.Entries++
			round := a.granted.Round
			rounds[round] = append(rounds[round], a)
			spans = append(spans, span{a.At, a.granted.At, round, round, a.operation})
		}
	}
	regressions(spans, func(before, after span) {
		b.accusef("%s came when %s had entered round %d, and entered round %d", after.who.name(), before.who.name(), before.last, after.first)
	})
	for _, number := range slices.Sorted(maps.Keys(rounds)) {
		b.checkRound(number, rounds[number])
	}
}

// checkRound looks at those who were inside together, since a transaction.
func (b *barrier) checkRound(number int64, together []*attempt) {
	opened := b.opened(number)
	if !opened.Happened() {
		b.accusef("%s entered round %d, which nobody has begun", together[0].name(), number)
		return
	}
	most, size := 0, int(together[0].Count)
	for _, a := range together {
		p := b.entrantOf(a)
		if p == nil || !stoodAt(p, number) {
			b.accusef("%s entered round %d, at whose beginning it did not stand at %s", a.name(), number, a.Barrier)
			continue
		}
		most, size = max(most, b.mostBetween(p.Made.Zxid, number)), min(size, int(a.Count))
		if early := b.clocks.earliest(opened).Since(a.granted.At); early > 0 {
			b.accusef("%s entered round %d %v before that began", a.name(), number, early)
		}
		if p.Gone.Happened() && a.believed && a.to > b.clocks.latest(p.Gone) {
			b.accusef("%s was sure to be inside %s for %v after its place was gone", a.name(), a.Barrier, a.to.Since(b.clocks.latest(p.Gone)))
		}
		b.checkLeave(a, number)
	}
	if most < size {
		b.accusef("round %d of %s began for %d callers, and no more than %d stood there at a time", number, together[0].Barrier, size, most)
	}
}

// opened is the transaction that began a round.
func (b *barrier) opened(number int64) txnlog.Stamp {
	for _, ready := range b.ready {
		for _, w := range ready.Writes {
			if w.Zxid == number {
				return w.Stamp
			}
		}
	}
	return txnlog.Stamp{}
}

// entrantOf is the node of a caller at the barrier; nil if there is none.
func (b *barrier) entrantOf(a *attempt) *txnlog.Life {
	for _, life := range b.entrants {
		if slices.ContainsFunc(life.Writes, func(w txnlog.Write) bool {
			return strings.Contains(string(w.Data), `"owner":"`+history.Owner(a.Client, a.Op)+`"`)
		}) {
			return life
		}
	}
	return nil
}

// mostBetween is how many stood at the barrier at a time at most, from one transaction to another.
func (b *barrier) mostBetween(from, to int64) (most int) {
	for _, moment := range b.entrants {
		if moment.Made.Zxid < from || moment.Made.Zxid > to {
			continue
		}
		standing := 0
		for _, other := range b.entrants {
			if other.Made.Zxid <= moment.Made.Zxid && (!other.Gone.Happened() || other.Gone.Zxid > moment.Made.Zxid) {
				standing++
			}
		}
		most = max(most, standing)
	}
	return most
}

// checkLeave demands that who has left, as it was told, has waited for all others of the round, and not for longer.
func (b *barrier) checkLeave(a *attempt, number int64) {
	releasing, left := a.first(history.Releasing), a.over()
	if releasing == nil || a.end != 0 || left == 0 {
		return
	}
	alone := releasing.At
	for _, other := range b.entrants {
		if !stoodAt(other, number) || other == b.entrantOf(a) {
			continue
		}
		if a.succeeded() != 0 && (!other.Gone.Happened() || b.clocks.earliest(other.Gone) > left) {
			b.accusef("%s left round %d of %s while another was inside", a.name(), number, a.Barrier)
		}
		if !other.Gone.Happened() {
			return
		}
		alone = max(alone, b.clocks.latest(other.Gone))
	}
	if left > b.deadline(alone, b.settings.Patience) {
		b.accusef("%s was told only after %v that all of round %d of %s had left", a.name(), left.Since(alone), number, a.Barrier)
	}
}

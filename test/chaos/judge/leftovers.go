package judge

import (
	"maps"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// checkLeftovers demands that nothing is left of callers that have ended, and that nothing waits that nobody stands in the
// way of.
func checkLeftovers(e *evidence, v *Verdict) {
	for _, o := range e.operations {
		e.checkAnswered(v, o)
	}
	queues := e.queues()
	for _, lock := range slices.Sorted(maps.Keys(queues)) {
		for _, p := range queues[lock] {
			if !p.Gone.Happened() && e.recovered() {
				v.accusef(Leftovers, "%s is still there", p.Path)
			}
		}
	}
	for _, a := range e.attempts {
		e.checkPlaces(v, a)
	}
	if e.residue != nil && e.recovered() {
		e.residue.check(v)
	}
}

// checkAnswered demands that all that was asked for has been answered or ended by the end of the round.
func (e *evidence) checkAnswered(v *Verdict, o *operation) {
	if o.end != 0 || e.quiet == 0 {
		return
	}
	var done bool
	switch o.Kind {
	case history.Asked:
		done = o.first(history.Got) != nil || o.first(history.Failed) != nil
	case history.Invoked:
		done = o.first(history.Returned) != nil
	case history.Putting:
		done = o.first(history.Placed) != nil
	case history.Watching:
		done = true // it goes on until it is ended
	default:
		done = o.first(history.Ended) != nil
	}
	if !done {
		v.accusef(Leftovers, "%s never heard again of what it %s through sidecar %d: %s",
			o.name(), o.Kind, o.Sidecar, o.thing())
	}
}

// checkPlaces looks at the nodes that were made for an attempt.
func (e *evidence) checkPlaces(v *Verdict, a *attempt) {
	if e.recovered() {
		e.checkDelay(v, a)
	}
	for i := 1; i < len(a.places); i++ {
		if before := a.places[i-1]; !a.beganAnew() && (!before.Gone.Happened() || before.Gone.Zxid > a.places[i].Made.Zxid) {
			v.accusef(Leftovers, "%s had two places in the queue of %s at once", a.name(), a.Lock)
		}
	}
}

// checkDelay looks at what depends on time. A round whose last operation failed in all its time shows that something was slow, and no more.
func (e *evidence) checkDelay(v *Verdict, a *attempt) {
	for _, p := range a.places {
		e.checkGhost(v, a, p)
	}
	if len(a.places) > 0 {
		e.checkStall(v, a, a.places[len(a.places)-1])
	}
}

// checkGhost demands that a place goes when its caller's attempt is over: at the latest with its session.
func (e *evidence) checkGhost(v *Verdict, a *attempt, p *place) {
	over := a.over()
	if over == 0 || !p.Gone.Happened() {
		return
	}
	until := e.deadline(max(over, a.to), a.outlives()+e.settings.SessionTimeout+e.settings.SessionTimeout/2+e.settings.Patience)
	if late := e.clocks.earliest(p.Gone).Since(until); late > 0 {
		v.accusef(Leftovers, "%s was over, and its place in the queue of %s stayed for %v more",
			a.name(), a.thing(), e.clocks.earliest(p.Gone).Since(over))
	}
}

// outlives is for how long a claim may stand that no caller counts on: its time, the 5 seconds that clocks may be wrong, and the 16 after which
// each sidecar looks again.
func (a *attempt) outlives() time.Duration {
	if a.Rest == 0 {
		return 0
	}
	return a.Rest + 21*time.Second
}

// checkStall demands that the caller whose turn it is hears of it.
func (e *evidence) checkStall(v *Verdict, a *attempt, p *place) {
	if !p.owned() || a.end != 0 {
		return
	}
	heard := a.over()
	if a.granted != nil {
		heard = a.granted.At
	}
	if heard == 0 {
		return // which is told elsewhere
	}
	turn := e.clocks.latest(p.head)
	if late := heard.Since(e.deadline(turn, e.settings.Patience)); late > 0 {
		v.accusef(Leftovers, "%s heard only after %v that it was its turn with %s", a.name(), heard.Since(turn), a.Lock)
	}
}

// few is how many goroutines and descriptors more than before mean nothing, beside a twentieth.
const few = 10

func (r *Residue) check(v *Verdict) {
	for _, node := range r.Nodes {
		v.accusef(Leftovers, "%s was left", node)
	}
	if r.Sessions > r.Expected {
		v.accusef(Leftovers, "%d sessions were left", r.Sessions-r.Expected)
	}
	for _, p := range r.Processes {
		p.check(v, "goroutines", p.GoroutinesBefore, p.GoroutinesAfter)
		p.check(v, "file descriptors", p.DescriptorsBefore, p.DescriptorsAfter)
	}
}

func (p Process) check(v *Verdict, what string, before, after int) {
	if after > before+before/20+few {
		v.accusef(Leftovers, "%s has %d %s, and had %d before", p.Name, after, what, before)
	}
}

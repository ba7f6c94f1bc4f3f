package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// A restart is one of a sidecar that had to cost nothing: from when the process before was told to end, or killed, to when the next one
// listened. What is seen until a session's timeout later, or until the next one, is what became of it.
type restart struct {
	target          string
	from, to, until history.Instant
}

// A bearer is an operation that stood on a lease when its sidecar's process ended.
type bearer struct {
	*operation

	what  string // it had
	nodes []*txnlog.Life
	done  history.Instant // when its caller gave it up, or was told that it is over; 0 if neither
}

// checkRestarts demands that what stands on leases outlives a sidecar that is replaced soon, each with the node that it had, if nothing else
// goes wrong in the round; and that nobody serves in the place of a sidecar that is only frozen.
func checkRestarts(e *evidence, v *Verdict) {
	for _, double := range e.doubled {
		if double.Outcome == history.OK {
			v.accusef(Restarts, "another process served beside that of %s, which was frozen", double.Target)
		}
	}
	if len(e.restarts) == 0 || !e.onlyRestarted() {
		return
	}
	bearers := e.bearers()
	for i, r := range e.restarts {
		r.until = r.to.Add(e.settings.SessionTimeout)
		for _, next := range e.restarts[i+1:] {
			if next.target == r.target {
				r.until = min(r.until, next.from)
				break
			}
		}
		v.Restarts++
		for _, b := range bearers[r.target] {
			if b.stoodAt(e, r) {
				e.checkBearer(v, b, r)
			}
		}
	}
}

// onlyRestarted says whether all faults of the round are those of the nemesis that restarts sidecars.
func (e *evidence) onlyRestarted() bool {
	return !slices.ContainsFunc(e.faults, func(f fault) bool { return f.nemesis != e.faults[0].nemesis })
}

// bearers are all that may outlive a sidecar, by its target.
func (e *evidence) bearers() map[string][]bearer {
	all := map[string][]bearer{}
	add := func(o *operation, what string, nodes ...*txnlog.Life) {
		if !o.Resumes || o.end != 0 || len(nodes) == 0 {
			return
		}
		b := bearer{operation: o, what: what, nodes: nodes, done: cmp.Or(o.givenUp(), o.over())}
		all[sidecarTarget(o.Sidecar)] = append(all[sidecarTarget(o.Sidecar)], b)
	}
	for _, a := range e.attempts {
		var nodes []*txnlog.Life
		for _, p := range a.places {
			nodes = append(nodes, p.Life)
		}
		add(a.operation, a.Lock, nodes...)
	}
	for group, members := range e.members() {
		lives := e.memberLives(group)
		for member, o := range members {
			if life := lives[member]; life != nil {
				add(o, group+"/"+member.Name, life)
			}
		}
	}
	return all
}

// known is when the caller knew that it held or was a member; 0 if it never did.
func (b bearer) known() history.Instant {
	for _, kind := range []history.Kind{history.Granted, history.Joined} {
		if event := b.first(kind); event != nil {
			return event.At
		}
	}
	return 0
}

// stoodAt says whether it stood certainly when the sidecar was still alive, as its caller knew, and was not over.
func (b bearer) stoodAt(e *evidence, r restart) bool {
	queued, known := b.first(history.Queued), b.known()
	if (known == 0 || known >= r.from) && (queued == nil || queued.At >= r.from) {
		return false
	}
	return b.At < r.from && (b.done == 0 || b.done > r.from) && e.clocks.latest(b.nodes[0].Made) < r.from
}

// resumeTime is how long a sidecar must have listened for its callers to have come back to it, also on a machine that has too much to do.
const resumeTime = 5 * time.Second

// away is since when a sidecar may not have been heard of at an instant, after a restart: others before it may have followed each other too
// fast.
func (e *evidence) away(r restart) history.Instant {
	since := r.from
	for _, before := range slices.Backward(e.restarts) {
		if before.target == r.target && before.from < since && since.Since(before.to) < resumeTime {
			since = before.from
		}
	}
	return since
}

// checkBearer looks at what became of one after a restart.
func (e *evidence) checkBearer(v *Verdict, b bearer, r restart) {
	if lost := b.lost(); lost != nil && lost.At <= r.until {
		v.Lost.Add(b.standing(r))
		// Later, the time may be over that was told before: the machine was too busy.
		if lost.At.Since(b.suspended(e, r, lost.At)) < e.settings.SessionTimeout/2 {
			v.accusef(Restarts, "%s lost %s (%s %s) %v after %s had ended, though another followed within %v",
				b.name(), b.what, lost.Code, lost.Reason, lost.At.Since(r.from), r.target, r.to.Since(r.from))
		}
		return
	}
	if e.checkNodes(v, b, r) {
		v.Outlived.Add(b.standing(r))
	} else {
		v.Lost.Add(b.standing(r))
	}
	if resumed := b.resumed(r); resumed != 0 {
		v.Pauses = append(v.Pauses, max(resumed.Since(r.to), 0))
	}
}

// checkNodes says whether what stood goes on with the node that it had.
func (e *evidence) checkNodes(v *Verdict, b bearer, r restart) (same bool) {
	for _, node := range b.kept() {
		gone := e.clocks.latest(node.Gone)
		if node.Gone.Happened() && !node.Expired && gone > r.from && gone < r.until && (b.done == 0 || gone < b.done) {
			v.accusef(Restarts, "%s went at zxid %#x, %v after %s had ended, and %s had not given %s up",
				node.Path, node.Gone.Zxid, gone.Since(r.from), r.target, b.name(), b.what)
		}
	}
	same = true
	for _, node := range b.nodes[1:] {
		made := e.clocks.earliest(node.Made)
		if made <= r.from || made >= r.until {
			continue
		}
		same = false
		if made.Since(b.suspended(e, r, made)) < e.settings.SessionTimeout/2 {
			v.accusef(Restarts, "%s took another place for %s at zxid %#x, after %s had ended", b.name(), b.what, node.Made.Zxid, r.target)
		}
	}
	return same
}

// kept are the nodes that must not go before their caller says so, or is told; that of a wait goes when it is over, and then it is told.
func (b bearer) kept() []*txnlog.Life {
	if b.known() == 0 {
		return nil
	}
	return b.nodes
}

// standing is what it was when the sidecar ended.
func (b bearer) standing(r restart) Standing {
	known := b.known()
	switch {
	case known == 0 || known > r.from:
		return Standing{Places: 1}
	case b.Kind == history.Joining:
		return Standing{Members: 1}
	default:
		return Standing{Holds: 1}
	}
}

// lost is the end of what its caller did not give up; nil if there is none. A wait may come to its end.
func (b bearer) lost() *history.Event {
	ended := b.first(history.Ended)
	if ended == nil {
		return nil
	}
	waited := b.known() == 0 && (slices.Contains([]string{"WAIT_TIMEOUT", "LOCK_HELD"}, ended.Reason) ||
		b.Wait > 0 && ended.At.Since(b.At) >= b.Wait) // of which a sidecar that is away does not tell
	if waited || b.givenUp() != 0 && b.givenUp() <= ended.At {
		return nil
	}
	return ended
}

// suspended is since when the caller had not heard from a sidecar at an instant: that itself if it was not told so. Who waits is not told.
func (b bearer) suspended(e *evidence, r restart, at history.Instant) history.Instant {
	if b.known() == 0 || b.known() > at {
		return e.away(r)
	}
	since := at
	for _, event := range b.later {
		switch {
		case event.At > at:
		case event.Kind == history.Suspended:
			since = min(since, event.At)
		case event.Kind == history.Resumed:
			since = at
		}
	}
	return since
}

// resumed is when the caller was told that it goes on after a restart; 0 if it was not.
func (b bearer) resumed(r restart) history.Instant {
	for _, event := range b.later {
		if event.Kind == history.Resumed && event.At > r.from && event.At <= r.until {
			return event.At
		}
	}
	return 0
}

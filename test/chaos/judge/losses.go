package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// leaseLost is the reason of a loss that somebody else's wish does not explain.
const leaseLost = "LEASE_LOST"

// reasons are those that a hold or a member may be lost for.
var reasons = []string{
	leaseLost, "LEASE_CLOSED", "LOCK_BROKEN", "LOCK_REVOKED", "SIDECAR_STOPPING", "MEMBER_REPLACED", "MEMBER_REMOVED", "SLOW_READER",
	"CLAIM_ENDED",
}

// losable are the kinds of operations that may be lost, and what is seen of each when its caller has what it asked for.
var losable = map[history.Kind]history.Kind{
	history.Called: history.Granted, history.Joining: history.Joined, history.Taking: history.Delivered,
	history.Entering: history.Entered, history.Numbering: history.Granted,
}

// checkLosses demands that whoever had a lock or an item, or was a member, and lives, was told the end of it once, with a reason and
// in time. It counts what was lost without need.
func checkLosses(e *evidence, v *Verdict) {
	for _, o := range e.operations {
		having, loses := losable[o.Kind]
		if !loses {
			continue
		}
		ends := o.all(history.Ended)
		if len(ends) > 1 {
			v.accusef(Losses, "%s was told its end %d times", o.name(), len(ends))
		}
		if o.first(having) == nil || len(ends) == 0 {
			continue // who never hears its end is told elsewhere
		}
		if givenUp := o.givenUp(); givenUp == 0 || givenUp > ends[0].At {
			e.checkLoss(v, o, ends[0])
		}
	}
	for _, a := range e.attempts {
		e.checkLate(v, a)
		e.checkAwake(v, a)
	}
}

func (e *evidence) checkLoss(v *Verdict, o *operation, end *history.Event) {
	// Where the connection to the sidecar breaks, gRPC itself ends the stream, and knows no reason of ours.
	cut := end.Reason == "" && end.Code == "Unavailable"
	disturbed := e.disturbed(end.At, "sidecar", "client")
	switch {
	case end.Code == "OK":
		v.accusef(Losses, "%s: the stream of %s ended with OK, though nobody had released it", o.name(), o.thing())
	case !slices.Contains(reasons, end.Reason) && !cut && !(end.Reason == "" && disturbed):
		v.accusef(Losses, "%s lost %s with %q %q, which is no reason to lose it", o.name(), o.thing(), end.Code, end.Reason)
	}
	switch {
	case end.Reason == leaseLost:
		v.countLoss(!e.settings.Spares && e.disturbed(end.At) || e.outlasted(end.At))
	case cut:
		v.countLoss(disturbed)
	}
}

// A majority that serves for less than settleTime does not count: sidecars wait longer between two attempts to reach it.
const settleTime = 3 * time.Second

// outlasted says whether no majority of the servers has served for more than half of the session timeout, up to a moment. A lease with
// the usual settings is valid for little longer than that without one, also where a nemesis is not to cost a lease: it was
// to be shorter, and the machine was too busy to start servers.
func (e *evidence) outlasted(at history.Instant) bool {
	since, until := history.Instant(0), history.Instant(0) // of the last time without a majority
	for _, f := range e.faults {
		if !strings.HasPrefix(f.target, "server/") || f.from > at || !e.lacksMajority(f.from) {
			continue
		}
		if since == 0 || f.from.Since(until) > settleTime {
			since = f.from
		}
		until = max(until, f.to)
	}
	return since != 0 && at.Since(until) <= settleTime && at.Since(since) > e.settings.SessionTimeout/2
}

// lacksMajority says whether at least two servers of three were out of order at a moment.
func (e *evidence) lacksMajority(at history.Instant) bool {
	down := map[string]bool{}
	for _, f := range e.faults {
		if strings.HasPrefix(f.target, "server/") && f.from <= at && at < f.to {
			down[f.target] = true
		}
	}
	return len(down) >= 2
}

// countLoss counts a loss that a fault explains, or none does.
func (v *Verdict) countLoss(explained bool) {
	v.Losses++
	if !explained {
		v.NeedlessLosses++
	}
}

// checkLate demands that a holder whose place has gone, by whatever cause, knows it soon after at the latest.
func (e *evidence) checkLate(v *Verdict, a *attempt) {
	ended := a.first(history.Ended)
	if a.granted == nil || ended == nil || a.released() {
		return
	}
	for _, p := range a.places {
		if p.Made.Zxid != a.granted.Token || !p.Gone.Happened() {
			continue
		}
		gone := e.clocks.latest(p.Gone)
		if late := ended.At.Since(e.deadline(gone, e.settings.Patience)); late > 0 {
			v.accusef(Losses, "%s lost %s at zxid %#x and heard of it only after %v", a.name(), a.Lock, p.Gone.Zxid, ended.At.Since(gone))
		}
	}
}

// wakeTime is how long a stream may stay open that was over when its machine woke. A sidecar looks every 200 ms; the rest is for a
// machine that has too much to do: with a hundred streams to end at once and ten programs for two processors, it took a second.
const wakeTime = 3 * time.Second

// checkAwake demands that a hold ends soon when its machine has slept for longer than its validity.
func (e *evidence) checkAwake(v *Verdict, a *attempt) {
	ended := a.first(history.Ended)
	if a.granted == nil || ended == nil {
		return
	}
	for _, slept := range e.slept[sidecarTarget(a.Sidecar)] {
		due := slept.At.Add(wakeTime)
		if a.granted.At >= slept.From || ended.At <= due || a.released() && a.givenUp() <= due {
			continue
		}
		v.accusef(Losses, "%s was told that %s was lost only %v after its machine had slept", a.name(), a.Lock, ended.At.Since(slept.At))
	}
}

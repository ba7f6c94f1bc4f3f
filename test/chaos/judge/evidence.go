package judge

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// Evidence is the events of a round, put in order.
type evidence struct {
	settings   history.Settings
	began      *history.Event
	quiet      history.Instant // 0 if it never came
	tombstone  history.Outcome
	buried     history.Instant // when that was known
	sets       map[string]set
	operations []*operation // in the order in which they began
	stores     map[string][]*history.Event
	faults     []fault
	killed     map[string]history.Instant   // by target, the first time
	ends       map[string][]history.Instant // by target, each time
	dying      map[string]history.Instant   // by target: when it was last known to live
	exempted   map[exempt]history.Instant   // the first time
	slept      map[string][]*history.Event  // by target
	restarts   []restart
	doubled    []*history.Event
	fired      []int64
	clocks     clocks
	log        *txnlog.Log
	lives      []*txnlog.Life
	residue    *Residue

	attempts []*attempt                // that is, the operations with locks
	keys     map[string][]*txnlog.Life // of the configuration
	delays   map[string][]lostDelay    // after holds of each lock
}

// An operation is what one caller did with one thing.
type operation struct {
	*history.Event // that began it

	later []*history.Event
	end   history.Instant // when its process was killed; 0 if it was not
	dying history.Instant // when that process was last known to live; 0 if it was not killed
}

// An exempt hold is one that was ended by force before its caller's time was over.
type exempt struct {
	lock  string
	token int64
}

// A fault is from when to when something was broken.
type fault struct {
	nemesis, target string
	from, to        history.Instant
}

type operationID struct {
	client int
	op     int64
}

// beginners are the kinds that begin an operation.
var beginners = []history.Kind{
	history.Called, history.Asked, history.Invoked, history.Watching, history.Joining, history.Putting, history.Taking,
	history.Setting, history.Removing, history.Awaiting, history.Entering, history.Requesting, history.Working,
	history.Numbering,
}

func gather(round Round) *evidence {
	e := &evidence{
		sets: map[string]set{}, stores: map[string][]*history.Event{}, killed: map[string]history.Instant{}, ends: map[string][]history.Instant{},
		dying: map[string]history.Instant{}, exempted: map[exempt]history.Instant{}, slept: map[string][]*history.Event{},
		log: round.Log, residue: round.Residue, clocks: clocks{ahead: round.Ahead},
	}
	running := map[operationID]*operation{}
	for i := range round.Events {
		event := &round.Events[i]
		id := operationID{event.Client, event.Op}
		switch {
		case slices.Contains(beginners, event.Kind):
			running[id] = &operation{Event: event}
			e.operations = append(e.operations, running[id])
		case running[id] != nil:
			running[id].later = append(running[id].later, event)
		default:
			e.note(event)
		}
	}
	e.complete()
	return e
}

// note takes in an event that belongs to no operation.
func (e *evidence) note(event *history.Event) {
	switch event.Kind {
	case history.Accepted, history.Refused:
		e.stores[event.Store] = append(e.stores[event.Store], event)
	case history.Clocks:
		e.clocks.add(event)
	case history.Began:
		e.began = event
		if event.Settings != nil {
			e.settings = *event.Settings
		}
	case history.Fault:
		e.faults = append(e.faults, fault{nemesis: event.Nemesis, target: event.Target, from: event.At})
	case history.Heal:
		e.heal(event)
	case history.Killed:
		e.killed[event.Target] = cmp.Or(e.killed[event.Target], event.At)
		e.ends[event.Target] = append(e.ends[event.Target], event.At)
		e.dying[event.Target] = cmp.Or(e.dying[event.Target], event.From, event.At)
	case history.Exempted:
		hold := exempt{event.Lock, event.Token}
		e.exempted[hold] = cmp.Or(e.exempted[hold], event.At)
	case history.Slept:
		e.slept[event.Target] = append(e.slept[event.Target], event)
	case history.Fired:
		e.fired = append(e.fired, event.Count)
	case history.Quiet:
		e.quiet = event.At
	case history.Tombstone:
		e.tombstone, e.buried = event.Outcome, event.At
	default:
		e.noteOther(event)
	}
}

// noteOther takes in an event about a set, or a sidecar that is replaced.
func (e *evidence) noteOther(event *history.Event) {
	switch event.Kind {
	case history.Defined:
		if _, known := e.sets[event.Set]; !known {
			e.sets[event.Set] = set{int(event.Count), event.At}
		}
	case history.Restarted:
		e.restarts = append(e.restarts, restart{target: event.Target, from: event.From, to: event.At})
	case history.Doubled:
		e.doubled = append(e.doubled, event)
	}
}

func (e *evidence) heal(event *history.Event) {
	for i := range slices.Backward(e.faults) {
		f := &e.faults[i]
		if f.to == 0 && f.nemesis == event.Nemesis && f.target == event.Target {
			f.to = event.At
			return
		}
	}
}

// complete is for what can only be said when all events are known.
func (e *evidence) complete() {
	for i := range e.faults {
		f := &e.faults[i]
		switch {
		case f.to != 0:
		case e.killed[f.target] != 0:
			f.to = max(f.from, e.killed[f.target]) // what is dead is not healed
		default:
			f.to = max(e.quiet, f.from)
		}
	}
	slices.SortFunc(e.faults, func(a, b fault) int { return cmp.Compare(a.from, b.from) })
	for _, o := range e.operations {
		process := "client/" + strconv.Itoa(o.Client)
		o.end, o.dying = e.killed[process], e.dying[process]
	}
	if e.log != nil {
		e.lives = e.log.Lives()
	}
	e.attempts = e.findAttempts()
}

// first is the first event of a kind, or nil.
func (o *operation) first(kind history.Kind) *history.Event {
	for _, event := range o.later {
		if event.Kind == kind {
			return event
		}
	}
	return nil
}

// all is the events of a kind.
func (o *operation) all(kind history.Kind) []*history.Event {
	var found []*history.Event
	for _, event := range o.later {
		if event.Kind == kind {
			found = append(found, event)
		}
	}
	return found
}

// givenUp is when the caller began to give it up by itself; 0 if it did not.
func (o *operation) givenUp() history.Instant {
	for _, kind := range []history.Kind{history.Releasing, history.Finishing} {
		if event := o.first(kind); event != nil {
			return event.At
		}
	}
	if ended := o.first(history.Ended); ended != nil && ended.ByUser {
		return ended.At
	}
	return 0
}

// over is when the process itself knew the operation to be over, or was killed; 0 if neither.
func (o *operation) over() history.Instant {
	if ended := o.first(history.Ended); ended != nil {
		return ended.At
	}
	return o.end
}

// name tells the operation apart, for people.
func (o *operation) name() string { return "client " + history.Owner(o.Client, o.Op) }

// thing is the name of what the operation is about.
func (o *operation) thing() string {
	return o.Lock + o.Sequence + o.Group + o.Queue + o.Barrier + o.Schedule + o.Pool
}

// deadline is until when something may take that began at from: the round's patience, and where a fault was there before
// it was over, the patience from when it was healed.
func (e *evidence) deadline(from history.Instant, patience time.Duration) history.Instant {
	until := from.Add(patience)
	for _, f := range e.faults {
		if f.from <= until {
			until = max(until, f.to.Add(patience))
		}
	}
	return until
}

// recovered says whether the round came to its end with everything working: only then can nothing be left, and all be known.
func (e *evidence) recovered() bool { return e.quiet != 0 && e.tombstone == history.OK }

// disturbed says whether a fault of any of these kinds of targets was there at some time before at.
func (e *evidence) disturbed(at history.Instant, targets ...string) bool {
	isMeant := func(target string) bool {
		return len(targets) == 0 ||
			slices.ContainsFunc(targets, func(kind string) bool { return strings.HasPrefix(target, kind+"/") })
	}
	for _, target := range slices.Sorted(maps.Keys(e.killed)) {
		if e.killed[target] <= at && isMeant(target) {
			return true
		}
	}
	return slices.ContainsFunc(e.faults, func(f fault) bool { return f.from <= at && isMeant(f.target) })
}

// path is where a name lies below a root. Names of locks, sequences and groups are one segment each.
func path(root, name string) string { return root + "/" + strings.ReplaceAll(name, "/", "%2F") }

// Package lease decides for one lease who may count on what stands on it, and when the place of what has ended may go. It is a machine without
// goroutines, clocks, locks or anything that waits: a driver brings it one event at a time, and does what the effects say. So what it decides
// is the same for the same events, and test/explore can play all orders of them.
package lease

import (
	"maps"
	"slices"
	"strconv"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// A Machine is one lease. Its zero value is one of which no caller was told anything.
type Machine struct {
	told     Assured    // of the lease, whose validity is that of all that stands on it
	closed   bool       // by its caller
	closer   Connection // over which it was
	lost     bool       // the session
	requests map[ID]request
	ended    []ID         // of them, those that have, in order
	watched  []Connection // in order
	most     int          // of those, before it is looked which are of no use any more
	departed []Connection // in order
	deadline Instant      // at which a caller's time may be over; 0 for never
}

// A request waits and is held until it has ended, and goes when no caller counts on it.
type request struct {
	on           Connection
	carried      bool
	token        int64 // 0 until it is held
	told         Assured
	stopped      bool
	acknowledged bool

	over     bool // it has ended
	parting  Parting
	free     bool
	handed   bool    // its end was, or its caller does not read it
	counting Assured // who may count on it after its end
}

// Step takes in one event and appends what is to be done. Nothing else changes a Machine. An event of a request that is not there any more
// changes nothing.
func (m *Machine) Step(now Instant, e Event, out []Effect) []Effect {
	switch e.Kind {
	case Began:
		if m.requests == nil {
			m.requests = map[ID]request{}
		}
		m.requests[e.Of] = request{on: e.On, carried: e.Carried}
		return out
	case Told:
		return m.tell(now, e, out)
	case Closed:
		m.closed, m.closer = true, e.On
		return out
	case Departed:
		insert(&m.departed, e.On)
		return m.leaveAll(now, out)
	case Lost:
		m.lost = true
		return m.leaveAll(now, out)
	case Ticked:
		return m.leaveAll(now, out)
	}
	r, known := m.requests[e.Of]
	if !known {
		return out
	}
	out = m.change(now, &r, e, out)
	m.requests[e.Of] = r
	if e.Kind == Forgotten {
		return m.forget(e.Of, out)
	}
	return m.leave(now, e.Of, out)
}

// Deadline is when Step wants Ticked if nothing comes before; 0 for never.
func (m *Machine) Deadline() Instant { return m.deadline }

// Left says whether a request is not there any more, so that its place may go.
func (m *Machine) Left(of ID) bool {
	_, known := m.requests[of]
	return !known
}

// tell notes who is told, before anybody is.
func (m *Machine) tell(now Instant, e Event, out []Effect) []Effect {
	if e.Of == 0 {
		m.told = m.told.Tell(now, e.On, e.For)
		return append(out, Effect{Do: Record, Step: trace.Promised, For: e.For})
	}
	r, known := m.requests[e.Of]
	if !known || r.over {
		return append(out, Effect{Do: Refuse})
	}
	r.told = r.told.Tell(now, e.On, e.For)
	m.requests[e.Of] = r
	return r.record(out, trace.Promised, e)
}

// change is what an event does to a request.
func (m *Machine) change(now Instant, r *request, e Event, out []Effect) []Effect {
	switch e.Kind {
	case Granted:
		r.token = e.Token
		how := trace.Held
		if r.carried {
			how = trace.Carried
		}
		out = r.record(out, how, e)
		if r.stopped {
			out = r.record(out, trace.Stopped, e)
		}
	case Stopped:
		r.stopped = true
		out = r.record(out, trace.Stopped, e)
	case Acknowledged:
		r.acknowledged = true
	case Ended:
		if !r.over {
			out = m.end(now, r, e, out)
		}
	case Handed, Unread:
		if r.over && !r.handed {
			out = m.handOver(now, r, e, out)
		}
	}
	return out
}

// end has nothing told of a request any more.
func (m *Machine) end(now Instant, r *request, e Event, out []Effect) []Effect {
	r.over, r.parting, r.free = true, e.Parting, e.Free
	insert(&m.ended, e.Of)
	if e.Parting == Cancelled {
		r.counting = r.told.Without(r.on)
	} else {
		r.counting = m.counting(r)
	}
	if e.Asked || m.closed {
		out = r.record(out, trace.Released, e)
	} else {
		out = r.record(out, trace.Ended, e)
	}
	return m.watch(now, r, out)
}

// handOver is when a request's end is read, or never will be. On the lease's stream, what was told of the lease by then may be read before it.
func (m *Machine) handOver(now Instant, r *request, e Event, out []Effect) []Effect {
	r.handed = true
	if r.carried && r.parting != Cancelled {
		r.counting = r.counting.And(m.counting(r))
	}
	if e.Kind == Handed {
		out = r.record(out, trace.Status, e)
	} else {
		out = r.record(out, trace.Unread, e)
	}
	return m.watch(now, r, out)
}

// counting is who may count on a request for what was told of it and of the lease by now.
func (m *Machine) counting(r *request) Assured {
	all := r.told.And(m.told)
	if m.closed {
		return all.Without(m.closer)
	}
	return all
}

// watch asks for the departure of those who count, and of the caller: one that asks over short connections may live on as long as its stream.
func (m *Machine) watch(now Instant, r *request, out []Effect) []Effect {
	counts := false
	for _, each := range r.counting {
		if each.until > now && !r.free {
			counts = true
			out = m.watchOne(each.on, out)
		}
	}
	if counts {
		out = m.watchOne(r.on, out)
	}
	return out
}

func (m *Machine) watchOne(on Connection, out []Effect) []Effect {
	if on == 0 || !insert(&m.watched, on) {
		return out
	}
	return append(out, Effect{Do: Watch, On: on})
}

// leaveAll has all go that may.
func (m *Machine) leaveAll(now Instant, out []Effect) []Effect {
	m.deadline = 0
	for _, of := range slices.Clone(m.ended) {
		out = m.leave(now, of, out)
	}
	return out
}

// leave has a request go whose end was handed over, or was asked for on the stream on which it would be, if no caller counts on it any more.
func (m *Machine) leave(now Instant, of ID, out []Effect) []Effect {
	r := m.requests[of]
	if !r.over || !r.handed && (!r.stopped || !r.acknowledged) {
		return out
	}
	counts, until := m.whoCounts(&r, now)
	switch {
	case counts == excused && r.acknowledged:
		out = r.record(out, trace.Acknowledged, Event{})
	case counts == excused:
		out = r.record(out, trace.Deserted, Event{})
	case counts == some:
		if m.deadline == 0 || until < m.deadline {
			m.deadline = until
		}
		return out
	}
	return m.forget(of, append(out, Effect{Do: Leave, Of: of}))
}

// Whether a caller counts.
type counted uint8

const (
	none    counted = iota // whose time would not be over
	excused                // but those who have said that they do not, or have left
	some
)

// whoCounts says whether a caller counts on a request that has ended, with the earliest instant at which one's time is over.
func (m *Machine) whoCounts(r *request, now Instant) (who counted, until Instant) {
	if r.free || m.lost {
		return none, 0
	}
	for _, each := range r.counting {
		switch {
		case each.until <= now:
			continue
		case r.acknowledged, m.hasLeft(each.on) && (r.parting == Cancelled || m.hasLeft(r.on)):
			who = max(who, excused)
		default:
			who = some
		}
		if until == 0 || each.until < until {
			until = each.until
		}
	}
	return who, until
}

func (m *Machine) hasLeft(on Connection) bool {
	_, left := slices.BinarySearch(m.departed, on)
	return left
}

func (m *Machine) forget(of ID, out []Effect) []Effect {
	delete(m.requests, of)
	if at, is := slices.BinarySearch(m.ended, of); is {
		m.ended = slices.Delete(m.ended, at, at+1)
	}
	if len(m.ended) == 0 {
		m.deadline = 0
	}
	if len(m.watched) == 0 || len(m.ended) > 0 && len(m.watched) <= m.most {
		return out
	}
	out = m.unwatch(out)
	m.most = 2*len(m.watched) + fewWatched
	return out
}

// fewWatched is how many connections are watched at least before it is looked which are of no use.
const fewWatched = 8

// unwatch has only those connections watched over which a caller counts on what has ended.
func (m *Machine) unwatch(out []Effect) []Effect {
	of := map[Connection]bool{}
	for _, id := range m.ended {
		of[m.requests[id].on] = true
		for _, each := range m.requests[id].counting {
			of[each.on] = true
		}
	}
	for _, on := range m.watched {
		if !of[on] {
			out = append(out, Effect{Do: Unwatch, On: on})
		}
	}
	useless := func(on Connection) bool { return !of[on] }
	m.watched, m.departed = slices.DeleteFunc(m.watched, useless), slices.DeleteFunc(m.departed, useless)
	return out
}

// Knows returns the connections over which a caller may count, and those of the callers.
func (m *Machine) Knows(now Instant) map[Connection]bool {
	all := map[Connection]bool{}
	note := func(told Assured) {
		for _, each := range told {
			if each.until >= now {
				all[each.on] = true
			}
		}
	}
	note(m.told)
	for _, r := range m.requests {
		all[r.on] = true
		note(r.told)
		note(r.counting)
	}
	return all
}

// record has a step of a hold written down. What was never held is not.
func (r *request) record(out []Effect, step trace.Kind, e Event) []Effect {
	if r.token == 0 {
		return out
	}
	return append(out, Effect{Do: Record, Token: r.token, Step: step, For: e.For})
}

// insert adds to a set in order, and says whether it was new.
func insert[T ID | Connection](set *[]T, added T) bool {
	at, known := slices.BinarySearch(*set, added)
	if !known {
		*set = slices.Insert(*set, at, added)
	}
	return !known
}

// Clone is a copy that has nothing in common with m.
func (m *Machine) Clone() Machine {
	c := *m
	c.told, c.ended = slices.Clone(m.told), slices.Clone(m.ended)
	c.watched, c.departed = slices.Clone(m.watched), slices.Clone(m.departed)
	c.requests = maps.Clone(m.requests)
	for of, r := range c.requests {
		r.told, r.counting = slices.Clone(r.told), slices.Clone(r.counting)
		c.requests[of] = r
	}
	return c
}

// AppendState appends all that a Machine knows: the same for two that behave alike from now on.
func (m *Machine) AppendState(state []byte, now Instant) []byte {
	state = m.told.appendState(state, now)
	if m.deadline != 0 {
		state = appendAll(state, int64(m.deadline-now))
	}
	state = appendAll(state, m.most, m.closed, uint64(m.closer), m.lost, len(m.watched), len(m.departed), len(m.requests))
	for _, set := range [][]Connection{m.watched, m.departed} {
		for _, on := range set {
			state = appendAll(state, uint64(on))
		}
	}
	for _, of := range slices.Sorted(maps.Keys(m.requests)) {
		r := m.requests[of]
		state = appendAll(state, uint64(of), uint64(r.on), r.carried, r.token, r.stopped, r.acknowledged, r.over, int(r.parting), r.free, r.handed)
		state = r.told.appendState(state, now)
		state = r.counting.appendState(state, now)
	}
	return state
}

// appendState appends for how much longer who counts.
func (a Assured) appendState(state []byte, now Instant) []byte {
	for _, each := range a {
		if each.until > now {
			state = appendAll(state, uint64(each.on), int64(each.until-now))
		}
	}
	return append(state, '.')
}

func appendAll(state []byte, values ...any) []byte {
	for _, value := range values {
		switch of := value.(type) {
		case bool:
			state = strconv.AppendBool(state, of)
		case int:
			state = strconv.AppendInt(state, int64(of), 10)
		case int64:
			state = strconv.AppendInt(state, of, 10)
		case uint64:
			state = strconv.AppendUint(state, of, 10)
		}
		state = append(state, ' ')
	}
	return state
}

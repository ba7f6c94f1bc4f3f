package explore

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/lease"
)

// A mistake is one that is planted in how a machine is driven, or in what is done with what it says.
type mistake string

const (
	deletedFirst    mistake = "deleted before handed over"
	grantedUnproved mistake = "granted before proved"
	toldLate        mistake = "told after ended"
	twoPlaces       mistake = "two places of one request"
	forgotten       mistake = "what the process before had told is forgotten"
	toldFirst       mistake = "told before its attempt is recorded"
	unchecked       mistake = "recorded without a check of its place"
	lagging         mistake = "a number found free by a list that lags"
	unversioned     mistake = "a number recorded without a check of its record's version"
	oneClock        mistake = "a claim ended by one clock alone"
	unread          mistake = "a claim ended without a check of its record's version"
	replaced        mistake = "a claim whose place is another one after its grant"
	brokenAtOnce    mistake = "a claim broken before its last answer is over"
)

// callers are two, each with a sidecar, a session and a lease of its own.
const callers = 2

// bounds are how far a lock is played.
type bounds struct {
	mistake  mistake
	carried  [callers]bool // whose hold is told of on its lease's stream
	once     bool          // each hold is an attempt at work that is done once, which is recorded before it is told
	numbered bool          // each hold is a permit that bears the one number, which is recorded before it is told; it goes with many
	claimed  bool          // there is a claim, too
	many     bool          // all may hold at once: permits that are enough for them, members of a group, those who vote or stand at a barrier
	ticks    int           // how often a tick passes
	places   int           // how many are made
	asks     int           // how often a caller asks for how long, of one hold
	faults   int           // how often one dies, falls silent or closes its lease
	kills    int           // how often a sidecar's process is killed, and another one comes in its place
	written  *[]byte       // where all is written that machines have done; nil for nowhere
	others   bool          // another process of each caller's asks over the second connection; if not, it does so itself, over a new one each time
}

// The connections of a caller: that of its stream, and one over which it asks beside.
const (
	ofStream lease.Connection = iota + 1
	beside
	outOfSight // that of those whom the process before has told over connections that are not the stream's
)

const (
	tick     = time.Second
	validity = 1 // ticks for which a session is valid that was proved
)

// A stage is how far a request has come, for its sidecar.
type stage int

const (
	idle stage = iota
	waiting
	holding
	ending // nothing is told of it any more, and its end is not handed over yet
	ended
)

// A lock is asked for by callers. What decides is the machine that ships; the rest is what surrounds it, as test/spec/Lock.tla has it.
type lock struct {
	bounds
	now     int
	places  []place // in the order of their making
	made    int
	faulty  int
	killed  int
	record  int    // the token of the newest attempt that is recorded, or of the permit that bears the number; 0 for none
	version int    // of the number's record
	wrong   string // which promise an act has broken
	sides   [callers]side
	claim   claim
}

// A place is a node in the lock's queue.
type place struct{ of, token int }

// A side is a caller and its sidecar.
type side struct {
	number   int
	machine  lease.Machine
	request  lease.ID
	stage    stage
	place    int  // its token; 0 for none
	first    bool // the sidecar's newest look showed that it is its turn
	write    int  // the token of the attempt, or of the permit, that is under way to its record; 0 for none
	sent     int  // the version of the number's record that this write is for
	seen     int  // likewise, with which the sidecar has found the number free; -1 for none
	recorded bool // its attempt or its number is, as the sidecar knows
	goes     bool // no caller counts on its place: it is to be deleted
	granted  int  // the newest token
	proved   int  // until when the session is valid
	lost     bool // the session, as the sidecar knows
	expired  bool // the session, as the ensemble knows

	held    bool // its request was, at some time
	asked   int
	ofLease bool   // the other process has asked for the lease's validity, which says nothing of a hold whose caller has cancelled it
	answers [2]int // until when what it has not read says that it holds the lock, by connection; 0 for nothing
	counts  [2]int // until when it counts on that, by connection
	onWay   bool   // the end of its hold is to be read
	knows   bool   // that it holds nothing
	dead    bool
	silent  bool    // nothing is heard of it any more, though it lives
	closed  bool    // it has closed its lease
	gone    bool    // the other process has
	watched [2]bool // whether the machine is told when its connections are closed

	down      bool // its sidecar's process was killed, and it has not come back to another one
	before    int  // until when those count whom that process has told
	shared    bool // it has told some over another connection than the stream's
	unclaimed bool // its place is to be deleted, which it did not claim when it came back
}

func newLock(b bounds) *lock {
	l := &lock{bounds: b}
	for i := range l.sides {
		l.sides[i].number, l.sides[i].knows, l.sides[i].proved, l.sides[i].seen = i, true, validity, -1
	}
	return l
}

// What ends a walk soon.
const (
	dies         = "dies"
	losesSession = "loses its session"
	fallsSilent  = "falls silent, and lives"
	closesLease  = "closes its lease"
	losesOther   = "loses the other process"
	killsSidecar = "has its sidecar killed"
)

var rare = []string{dies, losesSession, fallsSilent, closesLease, losesOther, killsSidecar}

// An act changes a world that is a copy already.
type act func(l *lock, s *side)

func (l *lock) steps() (all []step) {
	for i := range l.sides {
		s := &l.sides[i]
		may := func(is bool, what string, do act) {
			if !is {
				return
			}
			next := *l
			next.places = slices.Clone(l.places)
			own := &next.sides[i]
			own.machine = s.machine.Clone()
			do(&next, own)
			all = append(all, step{fmt.Sprintf("caller %d %s", i+1, what), &next, slices.Contains(rare, what)})
		}
		l.ofFaults(s, may)
		l.ofAnswers(s, may)
		l.ofRestart(s, may)
		l.ofAttempt(s, may)
		l.ofNumber(s, may)
		if s.down {
			continue
		}
		if !s.dead && !s.silent {
			l.ofCaller(s, may)
		}
		l.ofSidecar(s, may)
		l.ofSession(s, may)
	}
	if l.claimed {
		l.ofClaim(func(is bool, what string, do func(*lock)) {
			if !is {
				return
			}
			next := *l
			next.places = slices.Clone(l.places)
			do(&next)
			all = append(all, step{"the claim " + what, &next, false})
		})
	}
	if l.now < l.ticks {
		next := *l
		next.now++
		all = append(all, step{"a tick passes", &next, true})
	}
	return all
}

func (l *lock) ask(s *side) {
	s.request++
	s.stage, s.asked, s.first, s.recorded, s.held, s.ofLease, s.seen = waiting, 0, false, false, false, false, -1
	l.bring(s, lease.Event{Kind: lease.Began, Of: s.request, On: ofStream, Carried: l.carried[s.number]})
	l.make(s)
}

func (l *lock) make(s *side) {
	l.made++
	s.place = l.made
	l.places = append(l.places, place{s.number, l.made})
}

func (l *lock) remove(is func(place) bool) { l.places = slices.DeleteFunc(l.places, is) }

func (l *lock) grant(s *side) {
	s.stage, s.granted, s.held, s.knows = holding, s.place, true, s.dead
	for i := range l.sides {
		if other := &l.sides[i]; !l.many && other.granted > s.granted {
			l.wrong = "TokensGrow: a token is smaller than one that was granted before it"
		}
	}
	l.bring(s, lease.Event{Kind: lease.Granted, Of: s.request, Token: int64(s.place)})
}

func (l *lock) answer(s *side, of lease.ID, over lease.Connection) {
	s.asked++
	s.shared = s.shared || over == beside && l.kills > 0 // of no use otherwise
	s.ofLease = s.ofLease || of == 0 && over == beside && l.others
	told := lease.Event{Kind: lease.Told, Of: of, On: over, For: time.Duration(s.proved-l.now) * tick}
	if l.bring(s, told) || l.mistake == toldLate {
		s.answers[over-1] = max(s.answers[over-1], s.proved)
	}
}

// asks is whether one asks over a connection: the caller while it does not know that it holds nothing, the other process at any time.
func (s *side) asks(l *lock, over lease.Connection) bool {
	if over == beside && l.others {
		return !s.gone && !s.knows // that the caller counts no more is known to the other process, or the lease says nothing of its hold
	}
	return !s.knows && !s.dead && (!s.silent || over == beside)
}

func (l *lock) end(s *side, how lease.Parting) {
	asked := how == lease.Released || how == lease.Cancelled
	l.bring(s, lease.Event{Kind: lease.Ended, Of: s.request, Parting: how, Asked: asked, Free: s.stage == waiting})
	s.stage = ending
	if l.mistake == deletedFirst {
		l.bring(s, lease.Event{Kind: lease.Handed, Of: s.request})
	}
}

func (l *lock) hand(s *side, how lease.Kind) {
	l.bring(s, lease.Event{Kind: how, Of: s.request})
	s.stage, s.onWay = ended, !s.knows && how == lease.Handed
	s.rest()
}

// rest is when nothing is left of a request but what its caller has not read.
func (s *side) rest() {
	if s.stage == ended && s.place == 0 {
		s.stage = idle
	}
}

// forget is what a caller does that knows that it holds nothing, or that dies. The other process, if there is one, does not.
func (s *side) forget(others bool) {
	if !others {
		s.forgetAll()
		return
	}
	s.knows, s.counts[0], s.answers[0] = true, 0, 0
}

// forgetAll is what all do when one says for all that they do not count on the hold.
func (s *side) forgetAll() { s.knows, s.counts, s.answers = true, [2]int{}, [2]int{} }

func (l *lock) at() lease.Instant { return lease.Instant(time.Duration(l.now) * tick) }

// bring brings a machine an event, and says whether what was asked for may be done.
func (l *lock) bring(s *side, e lease.Event) (may bool) {
	may = true
	for _, effect := range s.machine.Step(l.at(), e, nil) {
		if l.written != nil {
			*l.written = fmt.Appendln(*l.written, s.number, e, effect)
		}
		switch effect.Do {
		case lease.Refuse:
			may = false
		case lease.Leave:
			s.goes = true
		case lease.Watch, lease.Unwatch:
			if effect.On != outOfSight { // whose end no sidecar hears of
				s.watched[effect.On-1] = effect.Do == lease.Watch
			}
		}
	}
	return may
}

// says is whether a caller's stream says that it holds the lock.
func (s *side) says() bool {
	return !s.down && !s.knows && !(s.lost && s.stage == ending) && (s.stage == holding || s.stage == ending)
}

// isSure is whether a caller that counts is sure of it.
func (l *lock) isSure(s *side) bool { return max(s.counts[0], s.counts[1]) > l.now }

// broken names the promises as docs/guarantees.md does.
func (l *lock) broken() string {
	a, b := &l.sides[0], &l.sides[1]
	switch {
	case l.wrong != "":
		return l.wrong
	case l.brokenClaim() != "":
		return l.brokenClaim()
	case l.many:
	case l.isSure(a) && l.isSure(b):
		return "OneCallerIsSure: two callers are sure of the lock"
	case a.says() && (b.says() || l.isSure(b)), b.says() && l.isSure(a):
		return "OneStreamHolds: one caller's stream says that it holds the lock, while another one's does or its caller is sure of it"
	}
	for i := range l.sides {
		if broken := cmp.Or(l.countsOnNothing(&l.sides[i]), l.unrecorded(&l.sides[i])); broken != "" {
			return broken
		}
	}
	for i, one := range l.places {
		if slices.ContainsFunc(l.places[:i], func(p place) bool { return p.of == one.of }) && l.sides[one.of].stage == waiting {
			return "a request has two places"
		}
	}
	return ""
}

// countsOnNothing is what a side breaks that counts on a place that is gone.
func (l *lock) countsOnNothing(s *side) string {
	switch {
	case slices.Contains(l.places, place{s.number, s.granted}):
		return ""
	case l.isSure(s):
		return "NobodyCountsOnWhatIsGone: a caller is sure of a lock whose place is gone"
	case s.says():
		return "NoStreamHoldsWhatIsGone: a caller's stream says that it holds a lock whose place is gone"
	}
	return ""
}

// stuck is which place stays for ever though its request has ended.
func (l *lock) stuck() string {
	for i := range l.sides {
		s := &l.sides[i]
		if s.place != 0 && !s.expired && !s.down && !s.unclaimed && (s.stage == ending || s.stage == ended) && s.machine.Deadline() == 0 {
			return fmt.Sprintf("GivenUpPlacesGo: the place of caller %d stays, though its request has ended and no caller counts on it", i+1)
		}
	}
	return ""
}

// state is the smaller one of what the two callers are, in both orders, where they are alike.
func (l *lock) state() string {
	text := l.stateAs([callers]int{0, 1})
	if other := l.stateAs([callers]int{1, 0}); l.carried[0] == l.carried[1] && other < text {
		return other
	}
	return text
}

func (l *lock) stateAs(order [callers]int) string {
	text := append(make([]byte, 0, 256), byte(l.now), byte(l.made), byte(l.faulty), byte(l.killed), byte(l.record), byte(l.version))
	if l.claimed {
		text = l.claim.appendTo(text, l.now, order)
	}
	text = append(text, byte(len(l.places)))
	for _, p := range l.places {
		text = append(text, byte(slices.Index(order[:], p.of)), byte(p.token))
	}
	for _, i := range order {
		s := &l.sides[i]
		left := func(until int) byte { return byte(max(0, until-l.now)) }
		text = append(
			text, byte(s.request), byte(s.stage), byte(s.place), byte(s.granted), left(s.proved+1), // the ensemble ends it after that
			byte(s.asked), left(s.answers[0]), left(s.answers[1]), left(s.counts[0]), left(s.counts[1]), left(s.before),
			byte(s.write), byte(s.sent), byte(s.seen),
		)
		for _, is := range []bool{
			s.held, s.ofLease, s.first, s.goes, s.lost, s.expired, s.onWay, s.knows, s.dead, s.silent, s.closed, s.gone, s.watched[0], s.watched[1],
			s.down, s.shared, s.unclaimed, s.recorded,
		} {
			if is {
				text = append(text, 1)
			} else {
				text = append(text, 0)
			}
		}
		text = s.machine.AppendState(text, l.at())
	}
	return string(text)
}

package judge

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// An attempt is an operation with a lock.
type attempt struct {
	*operation

	granted  *history.Event // nil if it never was
	from, to history.Instant
	believed bool // from before to: the caller was certainly sure of it, all the time
	places   []*place
}

// A place is a contender's node in a lock's directory.
type place struct {
	*txnlog.Life

	mode history.Mode
	// head is when nobody was before it any more whom it had to wait for; never, if there always was.
	head txnlog.Stamp
}

func (e *evidence) findAttempts() []*attempt {
	var all []*attempt
	byOwner := map[string]*attempt{}
	for _, o := range e.operations {
		if o.Kind == history.Called {
			a := e.newAttempt(o)
			all = append(all, a)
			byOwner[history.Owner(o.Client, o.Op)] = a
		}
	}
	for _, queue := range e.queues() {
		for _, p := range queue {
			if a := byOwner[ownerOf(p.Life)]; a != nil {
				a.places = append(a.places, p)
			}
		}
	}
	return all
}

func (e *evidence) newAttempt(o *operation) *attempt {
	a := &attempt{operation: o, granted: o.first(history.Granted)}
	for _, belief := range o.all(history.Believed) {
		if !a.believed {
			a.from = belief.From
		}
		a.believed = true
		a.to = max(a.to, belief.To)
	}
	e.count(a)
	a.cut(e.sleep(a))
	a.believed = a.believed && a.from <= a.to
	return a
}

// count is for callers that count on what they were told, also while they are frozen: they are sure of it until it has run out, or
// they have learned better, given the lock up, or died.
func (e *evidence) count(a *attempt) {
	told := a.all(history.Told)
	if len(told) == 0 {
		return
	}
	if !a.believed {
		a.from = told[0].At
	}
	a.believed = true
	a.to = max(a.to, told[len(told)-1].To)
	a.cut(a.givenUp(), a.dying, e.exemption(a))
}

// cut ends the belief at the first of these; 0 is none.
func (a *attempt) cut(ends ...history.Instant) {
	for _, end := range ends {
		if end != 0 {
			a.to = min(a.to, end)
		}
	}
}

// exemption is when the caller's hold became exempt; 0 if it did not.
func (e *evidence) exemption(a *attempt) history.Instant {
	if a.granted == nil {
		return 0
	}
	return e.exempted[exempt{a.Lock, a.granted.Token}]
}

// sleep is when the machine of the caller's sidecar, and with it the caller, slept for the first time after it was sure, or after it had
// asked for what made it sure; 0 if it never did.
func (e *evidence) sleep(a *attempt) history.Instant {
	asked := a.from
	if told := a.first(history.Told); told != nil && told.From != 0 {
		asked = min(asked, told.From)
	}
	for _, slept := range e.slept[sidecarTarget(a.Sidecar)] {
		if slept.At >= asked {
			return max(slept.From, a.from)
		}
	}
	return 0
}

func sidecarTarget(number int) string { return "sidecar/" + strconv.Itoa(number) }

// beganAnew says whether the caller's library has taken a place with another lease, while the one before may still have to run out.
func (a *attempt) beganAnew() bool {
	return a.Repeats && slices.ContainsFunc(a.places, func(p *place) bool { return p.Owner != a.places[0].Owner })
}

// released says whether the caller let go of what it had been granted.
func (a *attempt) released() bool { return a.givenUp() != 0 }

// byLock is the attempts of each lock, for which they stay in order.
func (e *evidence) byLock() map[string][]*attempt {
	locks := map[string][]*attempt{}
	for _, a := range e.attempts {
		locks[a.Lock] = append(locks[a.Lock], a)
	}
	return locks
}

// queues is the contenders of each lock of the round in the order of their czxids, by the ensemble's logs.
func (e *evidence) queues() map[string][]*place {
	directories := map[string]string{}
	for _, o := range e.operations {
		if o.Kind == history.Called {
			directories[path(e.settings.LockRoot, o.Lock)] = o.Lock
		}
	}
	queues := map[string][]*place{}
	for _, life := range e.lives {
		cut := strings.LastIndexByte(life.Path, '/')
		lock, ours := directories[life.Path[:max(cut, 0)]]
		if mode, ok := modeOf(life.Path[cut+1:]); ours && ok {
			queues[lock] = append(queues[lock], &place{Life: life, mode: mode})
		}
	}
	for _, queue := range queues {
		findHeads(queue)
	}
	return queues
}

// markers stand in the names of contenders.
var markers = []struct {
	text string
	mode history.Mode
}{{"__READ__", history.Read}, {"__WRIT__", history.Write}, {"lock-", history.Exclusive}}

func modeOf(name string) (history.Mode, bool) {
	for _, m := range markers {
		if strings.Contains(name, m.text) {
			return m.mode, true
		}
	}
	return "", false
}

// findHeads finds out when each place of a queue came to be first: when it was made, or when the last went that it had to
// wait for.
func findHeads(queue []*place) {
	slices.SortStableFunc(queue, func(a, b *place) int { return cmp.Compare(a.Made.Zxid, b.Made.Zxid) })
	type barrier struct {
		last    txnlog.Stamp // when the last of those before has gone
		forever bool         // one of them never has
	}
	pass := func(b *barrier, p *place) {
		b.forever = b.forever || !p.Gone.Happened()
		b.last = later(b.last, p.Gone)
	}
	var anybody, writers barrier
	for _, p := range queue {
		before := anybody
		if p.mode == history.Read {
			before = writers
		}
		if !before.forever {
			p.head = later(before.last, p.Made)
		}
		if p.mode != history.Read {
			pass(&writers, p)
		}
		pass(&anybody, p)
	}
}

func later(a, b txnlog.Stamp) txnlog.Stamp {
	if b.Zxid > a.Zxid {
		return b
	}
	return a
}

// owned says whether the place was ever the lock's.
func (p *place) owned() bool {
	return p.head.Happened() && (!p.Gone.Happened() || p.head.Zxid < p.Gone.Zxid)
}

// ownerOf is the owner that a node's data names when it is made.
func ownerOf(life *txnlog.Life) string {
	var form struct {
		Owner string `json:"owner"`
	}
	if json.Unmarshal(life.Writes[0].Data, &form) != nil {
		return "" // of others, who write what they like
	}
	return form.Owner
}

package judge

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// A mailbox is a queue: what its callers have seen, and the nodes of it that the ensemble's logs show.
type mailbox struct {
	*evidence

	verdict    *Verdict
	puts       []*operation
	takes      map[string]*attempt // by the owner that their nodes name
	deliveries map[string][]*attempt
	items      []*txnlog.Life            // in the order in which they were put
	taken      map[string][]*txnlog.Life // by the item's name: from when to when somebody had it
	places     []*place                  // of deliveries
	takers     []*place                  // of those who wait
}

// checkQueues demands that each item that was put is delivered to one caller at a time, in its order, until one is done with it.
func checkQueues(e *evidence, v *Verdict) {
	boxes := e.mailboxes(v)
	for _, queue := range slices.Sorted(maps.Keys(boxes)) {
		m := boxes[queue]
		for _, item := range slices.Sorted(maps.Keys(m.deliveries)) {
			m.checkItem(item, m.deliveries[item])
		}
		if e.log == nil {
			continue
		}
		m.checkPuts()
		m.checkRemovals()
		m.checkOrder()
		m.checkStalls()
		m.checkLeft()
	}
}

func (e *evidence) mailboxes(v *Verdict) map[string]*mailbox {
	boxes := map[string]*mailbox{}
	for _, o := range e.operations {
		if o.Queue == "" {
			continue
		}
		m := boxes[o.Queue]
		if m == nil {
			m = e.mailbox(v, o.Queue)
			boxes[o.Queue] = m
		}
		if o.Kind == history.Putting {
			m.puts = append(m.puts, o)
			continue
		}
		a := e.newAttempt(o)
		m.takes[history.Owner(o.Client, o.Op)] = a
		if a.granted = o.first(history.Delivered); a.granted != nil {
			v.Deliveries++
			m.deliveries[a.granted.Item] = append(m.deliveries[a.granted.Item], a)
		}
	}
	return boxes
}

// mailbox finds the nodes of a queue.
func (e *evidence) mailbox(v *Verdict, queue string) *mailbox {
	m := &mailbox{
		evidence: e, verdict: v, takes: map[string]*attempt{}, deliveries: map[string][]*attempt{}, taken: map[string][]*txnlog.Life{},
	}
	root := path(e.settings.QueueRoot, queue)
	for _, life := range e.lives {
		cut := strings.LastIndexByte(life.Path, '/')
		name := life.Path[cut+1:]
		switch life.Path[:max(cut, 0)] {
		case root:
			m.items = append(m.items, life)
		case root + ".takers":
			m.takers = append(m.takers, &place{Life: life, mode: history.Exclusive})
		case root + ".taken":
			if strings.HasPrefix(name, "queue-") {
				m.taken[name] = append(m.taken[name], life)
			} else {
				m.places = append(m.places, &place{Life: life})
			}
		}
	}
	findHeads(m.takers)
	return m
}

func (m *mailbox) accusef(format string, arguments ...any) {
	m.verdict.accusef(Queues, format, arguments...)
}

// itemForm is what stands before the one value of an item and its length, of lengthBytes; a byte follows.
var itemForm = []byte{0, 1, 0, 1, 1}

const lengthBytes = 4

// itemIn is the value of an item's node.
func itemIn(life *txnlog.Life) string {
	value, found := bytes.CutPrefix(life.Writes[0].Data, itemForm)
	if found && len(value) > lengthBytes {
		return string(value[lengthBytes : len(value)-1])
	}
	return ""
}

// stoodAt says whether a node was there when a transaction was carried out that did not remove it before.
func stoodAt(life *txnlog.Life, zxid int64) bool {
	return life.Made.Zxid < zxid && (!life.Gone.Happened() || zxid <= life.Gone.Zxid)
}

// checkItem looks at all deliveries of one item.
func (m *mailbox) checkItem(item string, deliveries []*attempt) {
	findOverlaps(m.verdict, Queues, item, deliveries)
	var spans []span
	for _, a := range deliveries {
		spans = append(spans, span{a.At, a.granted.At, a.granted.Token, a.granted.Token, a.operation})
		for _, before := range deliveries {
			if done := before.done(); done != 0 && a.At > done {
				m.accusef("%s was delivered %s, which %s had been told to be removed", a.name(), item, before.name())
			}
		}
		if m.log != nil {
			m.checkDelivery(a)
		}
	}
	regressions(spans, func(before, after span) {
		m.accusef("%s was delivered %s with token %d, after %s with token %d", after.who.name(), item, after.first, before.who.name(), before.last)
	})
}

// done is when the caller was told that the item is removed; 0 if it was not.
func (o *operation) done() history.Instant {
	if finished := o.first(history.Finished); finished != nil && finished.Outcome == history.OK {
		return finished.At
	}
	return 0
}

// checkDelivery compares a delivery with what the ensemble did: the caller has made a place for it while it had the item, which was there, and
// has the item as long as the place stands.
func (m *mailbox) checkDelivery(a *attempt) {
	token, item := a.granted.Token, a.granted.Item
	p := placeOf(token, m.places)
	if p == nil || ownerOf(p.Life) != history.Owner(a.Client, a.Op) {
		m.accusef("%s was delivered %s with token %d, which is not that of its place", a.name(), item, token)
		return
	}
	a.places = append(a.places, p)
	m.checkGhost(m.verdict, a, p)
	if early := m.clocks.earliest(p.Made).Since(a.granted.At); early > 0 {
		m.accusef("%s was delivered %s %v before its place was there", a.name(), item, early)
	}
	if p.Gone.Happened() && a.believed && a.to > m.clocks.latest(p.Gone) {
		m.accusef("%s was sure of %s for %v after its place was gone", a.name(), item, a.to.Since(m.clocks.latest(p.Gone)))
	}
	node := m.standing(item, p.Made.Zxid)
	if node == nil {
		m.accusef("%s was delivered %s, which was not in the queue", a.name(), item)
		return
	}
	had := m.hadAt(node, p.Made.Zxid)
	switch {
	case had == nil || had.Owner != p.Owner:
		m.accusef("%s was delivered %s, which it had not taken", a.name(), item)
	case had.Gone.Happened() && !stoodBefore(had, p):
		m.accusef("%s was taken from %s at zxid %#x while it was delivered", item, a.name(), had.Gone.Zxid)
	}
}

// stoodBefore says whether a place went before what it stands on, or with it.
func stoodBefore(had *txnlog.Life, p *place) bool {
	return p.Gone.Happened() && p.Gone.Zxid <= had.Gone.Zxid
}

// standing is the node of an item in the queue at a transaction; nil if there was none.
func (m *mailbox) standing(item string, zxid int64) *txnlog.Life {
	for _, life := range m.items {
		if itemIn(life) == item && stoodAt(life, zxid) {
			return life
		}
	}
	return nil
}

// hadAt is the node of who had an item at a transaction; nil if nobody had.
func (m *mailbox) hadAt(item *txnlog.Life, zxid int64) *txnlog.Life {
	for _, taken := range m.taken[nameOf(item)] {
		if stoodAt(taken, zxid) {
			return taken
		}
	}
	return nil
}

func nameOf(life *txnlog.Life) string { return life.Path[strings.LastIndexByte(life.Path, '/')+1:] }

// checkPuts demands that what was put is there, once, and that what was not is not.
func (m *mailbox) checkPuts() {
	nodes := map[string][]*txnlog.Life{}
	for _, life := range m.items {
		nodes[itemIn(life)] = append(nodes[itemIn(life)], life)
	}
	for _, o := range m.puts {
		placed, found := o.first(history.Placed), nodes[o.Item]
		if len(found) > 1 {
			m.accusef("%s was put into %s %d times, and asked for once", o.Item, o.Queue, len(found))
		}
		switch {
		case placed == nil:
		case placed.Outcome == history.OK && (len(found) == 0 || m.clocks.earliest(found[0].Made) > placed.At):
			m.accusef("%s was told that its item is in %s, and it was not", o.name(), o.Queue)
		case placed.Outcome == history.Denied && len(found) > 0:
			m.accusef("%s was told that its item is not in %s, and it was", o.name(), o.Queue)
		}
	}
}

// checkRemovals demands that an item goes since a caller is done that has it, and that it has gone when that caller is told so.
func (m *mailbox) checkRemovals() {
	for _, life := range m.items {
		var remover *attempt
		for _, a := range m.deliveries[itemIn(life)] {
			if finishing := a.first(history.Finishing); life.Gone.Happened() && m.heldAt(a, life.Gone.Zxid) && finishing != nil &&
				finishing.At <= m.clocks.latest(life.Gone) {
				remover = a
			}
			if done := a.done(); done != 0 && (!life.Gone.Happened() || m.clocks.earliest(life.Gone) > done) {
				m.accusef("%s was told that %s is removed, and it was not", a.name(), itemIn(life))
			}
		}
		if !life.Gone.Happened() {
			continue
		}
		m.verdict.Items++
		if remover == nil {
			m.accusef("%s was removed at zxid %#x, though nobody who had it was done with it", itemIn(life), life.Gone.Zxid)
		}
	}
}

// heldAt says whether the place of a delivery stood at a transaction.
func (m *mailbox) heldAt(a *attempt, zxid int64) bool {
	p := placeOf(a.granted.Token, m.places)
	return p != nil && stoodAt(p.Life, zxid)
}

// checkOrder demands that items are taken in the order of the puts, and by callers in the order in which they came. An item that was given back
// may have been so too late for who took another. A list that shows an item shows all that were put before and are there.
func (m *mailbox) checkOrder() {
	for i, item := range m.items {
		for _, taken := range m.taken[nameOf(item)] {
			for _, earlier := range m.items[:i] {
				if stoodAt(item, taken.Made.Zxid) && stoodAt(earlier, taken.Made.Zxid) && !m.takenBefore(earlier, taken.Made.Zxid) {
					m.accusef("%s was taken at zxid %#x before %s, which had been put before it", itemIn(item), taken.Made.Zxid, itemIn(earlier))
				}
			}
			if !m.wasFirst(taken) {
				m.accusef("%s was taken at zxid %#x by a session of which nobody was the first to have its turn", itemIn(item), taken.Made.Zxid)
			}
		}
	}
}

// takenBefore says whether anybody had taken an item before a transaction.
func (m *mailbox) takenBefore(item *txnlog.Life, zxid int64) bool {
	return slices.ContainsFunc(m.taken[nameOf(item)], func(taken *txnlog.Life) bool { return taken.Made.Zxid < zxid })
}

// wasFirst says whether somebody was the first of those who waited, with the session that took an item.
func (m *mailbox) wasFirst(taken *txnlog.Life) bool {
	return slices.ContainsFunc(m.takers, func(p *place) bool {
		return p.Owner == taken.Owner && p.head.Happened() && p.head.Zxid < taken.Made.Zxid && stoodAt(p.Life, taken.Made.Zxid)
	})
}

// checkStalls demands that nobody waits at the head of the queue beside an item that nobody has.
func (m *mailbox) checkStalls() {
	for _, p := range m.takers {
		a := m.takes[ownerOf(p.Life)]
		if a == nil || a.end != 0 || !p.owned() {
			continue
		}
		first, over := m.clocks.latest(p.head), m.goneBy(p.Life)
		for _, item := range m.items {
			for _, free := range m.free(item) {
				since, until := max(first, free.from), min(over, free.to)
				if since < until && until > m.deadline(since, m.settings.Patience) {
					m.accusef("%s waited for %v beside %s, which nobody had", a.name(), until.Since(since), itemIn(item))
				}
			}
		}
	}
}

// goneBy is when a node had certainly not gone yet; the end of the round if it never went.
func (m *mailbox) goneBy(life *txnlog.Life) history.Instant {
	if life.Gone.Happened() {
		return m.clocks.earliest(life.Gone)
	}
	return m.quiet
}

// A window is a time in which something was so.
type window struct{ from, to history.Instant }

// free is from when to when an item was there, nobody had it, and it did not rest from deliveries in vain.
func (m *mailbox) free(item *txnlog.Life) (all []window) {
	since := m.clocks.latest(item.Made)
	for i, taken := range m.taken[nameOf(item)] {
		all = append(all, window{since, m.clocks.earliest(taken.Made)})
		since = m.quiet
		if taken.Gone.Happened() {
			since = m.deadline(m.clocks.latest(taken.Gone), restAfter(i+1))
		}
	}
	return append(all, window{since, m.goneBy(item)})
}

// restAfter is how long an item may rest after so many deliveries.
func restAfter(deliveries int) time.Duration {
	if deliveries < 2 {
		return 0
	}
	return min(time.Second<<min(deliveries-2, 10), 30*time.Second)
}

// checkLeft demands that nothing but items is left at the end.
func (m *mailbox) checkLeft() {
	if !m.recovered() {
		return
	}
	var left []*txnlog.Life
	for _, p := range slices.Concat(m.places, m.takers) {
		left = append(left, p.Life)
	}
	for _, lives := range m.taken {
		left = append(left, lives...)
	}
	for _, life := range left {
		if !life.Gone.Happened() {
			m.accusef("%s is still there", life.Path)
		}
	}
}

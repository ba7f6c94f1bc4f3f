package explore

import "slices"

// The claim's place is one in the queue that belongs to neither caller.
const ofClaim = callers

// A standing is how far the claim has come, as its record says.
type standing int

const (
	unmade standing = iota
	pending
	held
	over
)

// A claim is held without a session, as recipes/claim.go has it. A span and a validity are a tick, and the clocks' tolerance is none.
type claim struct {
	standing
	token   int // of its place
	version int // of its record
	until   int // it stands
	marked  int // a tick more than that at which an operator asked for its end; 0 for never

	write    int          // the version of the record for which its grant or an extension is under way; 0 for none
	sent     int          // when that was sent
	extended int          // how often
	found    [callers]int // the version over which each caller's sidecar has found the time over; 0 for none
	released bool         // its owner counts on it no more
	answer   int          // until when what the owner has not read says that it stands; 0 for nothing
	sure     int          // until when the owner counts on it
}

// ofClaim are what happens to the one claim that there is. Its owner may ask any sidecar, over any connection, and asks again after a reply that
// was lost. The ensemble carries a write out or refuses it at any time after it was sent.
func (l *lock) ofClaim(may func(bool, string, func(*lock))) {
	c := &l.claim
	stands := slices.Contains(l.places, place{ofClaim, c.token})
	may(c.standing == unmade && l.made < l.bounds.places, "is made", func(l *lock) {
		l.made++
		l.claim.standing, l.claim.token, l.claim.version = pending, l.made, 1
		l.places = append(l.places, place{ofClaim, l.made})
	})
	isFirst := stands && l.places[0].token == c.token
	grows := c.standing == held && c.extended < l.asks && !c.released
	may(c.write == 0 && c.marked == 0 && (c.standing == pending && isFirst || grows), "has its grant, or more time, sent", func(l *lock) {
		l.claim.write, l.claim.sent = l.claim.version, l.now
		if l.claim.standing == held {
			l.claim.extended++
		}
	})
	may(c.write != 0, "has its grant, or more time, carried out or refused", func(l *lock) { l.carryClaim(true) })
	may(c.write != 0, "has its grant, or more time, carried out or refused, and hears no reply", func(l *lock) { l.carryClaim(false) })
	may(c.standing == held && stands && c.marked == 0 && !c.released, "is checked", func(l *lock) { l.claim.tell(l.now) })
	may(c.answer > l.now, "has its answer read", func(l *lock) { l.claim.sure, l.claim.answer = max(l.claim.sure, l.claim.answer), 0 })
	may(c.standing != unmade && !c.released, "is given up", func(l *lock) { l.claim.released, l.claim.sure, l.claim.answer = true, 0, 0 })
	may(c.released && stands, "is released", (*lock).endClaim)
	l.ofClaimsEnd(stands, may)
}

// ofClaimsEnd are how a claim ends that its owner does not release: by its time, or by an operator. Its time is over when two clocks say so, of
// which one is right.
func (l *lock) ofClaimsEnd(stands bool, may func(bool, string, func(*lock))) {
	c := &l.claim
	for i := range c.found {
		late := l.now >= c.until || l.mistake == oneClock
		may(c.standing == held && stands && late && c.found[i] != c.version, "is found to be over", func(l *lock) {
			l.claim.found[i] = l.claim.version
		})
		may(c.found[i] != 0, "is ended by who found it over, or not", func(l *lock) {
			if stands && (l.claim.found[i] == l.claim.version || l.mistake == unread) {
				l.endClaim()
			}
			l.claim.found[i] = 0
		})
	}
	may(stands && c.marked == 0, "is asked for its end by an operator", func(l *lock) { l.claim.marked = l.now + 1 })
	outwaited := l.now >= c.marked-1+validity || l.mistake == brokenAtOnce
	may(stands && c.marked != 0 && outwaited, "is broken by an operator", (*lock).endClaim)
}

// carryClaim is the transaction that grants the claim or extends it, if its record and its place are as they were seen.
func (l *lock) carryClaim(heard bool) {
	c := &l.claim
	version := c.write
	c.write = 0
	at := slices.Index(l.places, place{ofClaim, c.token})
	if at < 0 || version != c.version || c.marked != 0 {
		return
	}
	if l.mistake == replaced && c.standing == pending {
		l.made++
		l.places = append(slices.Delete(l.places, at, at+1), place{ofClaim, l.made})
		c.token = l.made
	}
	c.standing, c.version, c.until = held, c.version+1, max(c.until, l.now+validity)
	if heard && !c.released {
		c.tell(c.sent)
	}
}

// tell answers the owner, who counts from when it asked.
func (c *claim) tell(asked int) { c.answer = max(c.answer, min(c.until, asked+validity)) }

// endClaim is the transaction that ends the claim and its place.
func (l *lock) endClaim() {
	l.remove(func(p place) bool { return p.of == ofClaim })
	l.claim.standing = over
	l.claim.version++
}

// brokenClaim is what the claim's owner breaks, if it counts on the claim.
func (l *lock) brokenClaim() string {
	if l.claim.sure <= l.now {
		return ""
	}
	if !slices.Contains(l.places, place{ofClaim, l.claim.token}) {
		return "NobodyCountsOnWhatIsGone: the owner of a claim is sure of it, and its place is gone"
	}
	for i := range l.sides {
		if s := &l.sides[i]; s.says() || l.isSure(s) {
			return "OneCallerIsSure: the owner of a claim and another caller are sure of the lock"
		}
	}
	return ""
}

// appendTo writes what is to come of a claim, as of now.
func (c *claim) appendTo(text []byte, now int, order [callers]int) []byte {
	left := func(until int) byte { return byte(max(0, until-now)) }
	marked := byte(0)
	if c.marked != 0 {
		marked = 1 + left(c.marked-1+validity)
	}
	text = append(text, byte(c.standing), byte(c.token), byte(c.version), left(c.until), marked, byte(c.write), left(c.sent+validity),
		byte(c.extended), left(c.answer), left(c.sure))
	for _, i := range order {
		text = append(text, byte(c.found[i]))
	}
	if c.released {
		return append(text, 1)
	}
	return append(text, 0)
}

package zookeeper

import (
	"slices"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// A serverKey is what sessions have in common that one of them can prove: where their connections end, and the id of the server there, with
// which the number of each session begins that was made on its connection. And the timeout, so that all need heartbeats equally often, and the
// credentials, so that each may check the places of all.
type serverKey struct {
	seat
	poolKey
}

// sharedProofs are the sessions of a sidecar by their servers.
type sharedProofs struct {
	mu      sync.Mutex
	byKey   map[serverKey]*sharedProof
	ids     map[string]byte // of the server that was seen last behind each address and port
	shared  map[string]bool // behind which several were seen: a proxy's
	reaches map[seat]reach
}

func newSharedProofs() sharedProofs {
	return sharedProofs{
		byKey: make(map[serverKey]*sharedProof), ids: make(map[string]byte), shared: make(map[string]bool), reaches: make(map[seat]reach),
	}
}

// A sharedProof is a company of sessions that are connected to one server, each since it was made.
type sharedProof struct {
	sharedProofs *sharedProofs // whose lock guards what follows
	key          serverKey

	company[*Session]
	timer *time.Timer // of what is due for all; nil before anything is
}

// The bounds of a heartbeat that asks for the places of several sessions.
const (
	mostSharedChecks = 1 << 10
	mostSharedBytes  = 128 << 10 // of the places' paths
	mostSharedBeats  = 8         // in one round: what is left is asked for in the next one
)

// A sharedHeartbeat is what a heartbeat of the prober says of the other sessions.
type sharedHeartbeat struct {
	by   int64   // the prober's number
	of   instant // when the newest heartbeat but one was sent, or 0
	from instant // when the handshake of the prober's connection was answered
	sent instant // when the heartbeat was
}

// joinSharedProof has the session prove itself together with others while it is certain which server it is connected to. It returns nil if it is
// not. The lock is held.
func (s *Session) joinSharedProof() *sharedProof {
	if !s.isAtHome() {
		s.part()
	} else if s.sharedProof == nil {
		alike := poolKey{timeout: s.negotiated, auth: string(s.auth), tls: s.certificate}
		key := serverKey{seat{serverOf(s.id), s.wire.peer}, alike}
		s.sharedProof = s.client.sharedProofs.enter(key, s)
	}
	return s.sharedProof
}

// serverOf is the id of the server that has made a session.
func serverOf(session int64) byte { return byte(uint64(session) >> 56) }

// isAtHome says whether the session is connected to the server that its number names, over the connection on which it was made, and the ensemble
// lists that server. The lock is held.
func (s *Session) isAtHome() bool {
	return s.err == nil && !s.closing && !s.brief && !s.asleep && !s.proof.static && s.connected && s.wire == s.birth &&
		s.client.servers.knows(serverOf(s.id)) && s.client.sharedProofs.isOneServer(s.wire.peer)
}

// saw takes in that a server of this id has made a session over a connection to peer.
func (c *sharedProofs) saw(id byte, peer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, seen := c.ids[peer]; seen && before != id {
		c.shared[peer] = true
	}
	c.ids[peer] = id
}

func (c *sharedProofs) isOneServer(peer string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.shared[peer]
}

// part has the session prove itself alone from now on. The lock is held.
func (s *Session) part() {
	if s.sharedProof != nil {
		s.sharedProof.leave(s)
		s.sharedProof = nil
		s.suspended, s.doubted = s.suspended || s.doubted, false
	}
}

func (c *sharedProofs) enter(key serverKey, s *Session) *sharedProof {
	c.mu.Lock()
	defer c.mu.Unlock()
	joined := c.byKey[key]
	if joined == nil {
		joined = &sharedProof{sharedProofs: c, key: key, company: newCompany[*Session](s.interval, s.client.config.sharedPatience(key.timeout))}
		c.byKey[key] = joined
	}
	joined.enter(s)
	return joined
}

// sharedPatience is that of a company whose sessions have this timeout: half an interval, or none where they do not bear to lose contact for
// two.
func (c *Config) sharedPatience(timeout time.Duration) time.Duration {
	if interval := c.interval(timeout); c.Validity(timeout).Silence >= 2*interval {
		return interval / 2
	}
	return 0
}

func (c *sharedProof) leave(s *Session) {
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	if c.company.leave(s); len(c.members) == 0 {
		delete(c.sharedProofs.byKey, c.key)
	}
	c.schedule(s.now())
}

// schedule has what is due next done then. The lock is held.
func (c *sharedProof) schedule(now instant) {
	switch next := c.nextTick(); {
	case next == never:
	case c.timer == nil:
		c.timer = time.AfterFunc(next.since(now), c.tick)
	default:
		c.timer.Reset(next.since(now))
	}
}

// tick does what is due for all.
func (c *sharedProof) tick() {
	c.sharedProofs.mu.Lock()
	sessions, doubts := slices.Clone(c.members), false
	if len(sessions) > 0 {
		var summons bool
		now := sessions[0].now()
		if summons, doubts = c.company.tick(now); summons {
			sessions[0].summon()
		}
		c.schedule(now)
	}
	c.sharedProofs.mu.Unlock()
	if doubts {
		for _, each := range sessions {
			each.beDoubted(c)
		}
	}
}

// roleOf is that of a session in its company, if it has one.
func (c *sharedProof) roleOf(s *Session, now instant) (leads, accompanied, proved bool) {
	if c == nil {
		return false, false, false
	}
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	return c.company.roleOf(s, now)
}

// othersOf are the sessions that this one proves: none if it is not the prober.
func (c *sharedProof) othersOf(s *Session) (others []*Session) {
	if c == nil {
		return nil
	}
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	if c.isLedBy(s) {
		others = slices.Clone(c.members[1:])
	}
	return others
}

// others are the sessions but this one.
func (c *sharedProof) others(s *Session) []*Session {
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.members), func(other *Session) bool { return other == s })
}

// pass has the next session prove the others, if this one does.
func (c *sharedProof) pass(s *Session) {
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	if now := s.now(); c.company.pass(s, now) {
		c.members[0].summon()
		c.schedule(now)
	}
}

// beDoubted takes in that the heartbeats are late that would prove the session: it sends one of its own.
func (s *Session) beDoubted(c *sharedProof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sharedProof == c && s.err == nil && !s.doubted && s.now().since(s.proof.newest.answered) >= s.interval {
		s.doubted = true
		s.change()
		s.client.config.Late()
		s.summon()
	}
}

// proveOthers hands what the heartbeat of a prober has shown to the others, and what was told of their places.
func (c *sharedProof) proveOthers(prober *Session, shown sharedHeartbeat, told answer) {
	if !c.accepts(prober, shown) {
		return
	}
	held := make(map[*Session][]check)
	for _, each := range told.held {
		held[each.session] = append(held[each.session], each)
	}
	for _, each := range c.others(prober) {
		of := answer{held: held[each], why: told.why}
		if len(told.refused) > 0 && told.refused[0].session == each {
			of.refused = told.refused
		}
		each.beProvedBy(c, shown, of)
	}
}

// accepts is that of a session in its company.
func (c *sharedProof) accepts(s *Session, shown sharedHeartbeat) bool {
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	return c.company.accepts(s, shown, s.now())
}

// beProvedBy takes what the heartbeat of another session has shown, unless it is too late.
func (s *Session) beProvedBy(by *sharedProof, shown sharedHeartbeat, told answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.now() >= s.overAt() {
		return
	}
	s.take(told, shown.sent)
	if s.sharedProof != by {
		return
	}
	if request, ok := s.proof.borrow(shown.of, shown.from); ok {
		s.attempts = 0
		s.tellProof(trace.Shared, request, shown.by)
	}
	if s.doubted {
		s.doubted = false
		s.change()
	}
}

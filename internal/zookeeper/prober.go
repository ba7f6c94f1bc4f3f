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

// A sharedProof is sessions that are connected to one server, each since it was made. The first of them is the prober, whose heartbeats prove
// them all and ask for the places of all; what the others send are plain reads. See the package comment.
type sharedProof struct {
	sharedProofs *sharedProofs // whose lock guards what follows
	key          serverKey

	sessions []*Session
	proved   instant     // when a heartbeat was answered that proved the others; 0 if none was
	doubt    *time.Timer // runs from when a heartbeat of the prober is half late until one is answered; or nil
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
		joined = &sharedProof{sharedProofs: c, key: key}
		c.byKey[key] = joined
	}
	joined.sessions = append(joined.sessions, s)
	return joined
}

func (c *sharedProof) leave(s *Session) {
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	i := slices.Index(c.sessions, s)
	c.sessions = slices.Delete(c.sessions, i, i+1)
	if len(c.sessions) < 2 {
		c.settle()
	}
	if len(c.sessions) == 0 {
		delete(c.sharedProofs.byKey, c.key)
	} else if i == 0 {
		due := c.proved.add(s.interval / 2)
		time.AfterFunc(due.since(s.now()), c.summonNext) // once for all that leave until then
	}
}

func (c *sharedProof) summonNext() {
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	if len(c.sessions) > 0 {
		c.sessions[0].summon()
	}
}

// settle ends the doubt. The lock is held.
func (c *sharedProof) settle() {
	if c.doubt != nil {
		c.doubt.Stop()
		c.doubt = nil
	}
}

// isLedBy says whether the session is the prober of others.
func (c *sharedProof) isLedBy(s *Session) bool {
	if c == nil {
		return false
	}
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	return len(c.sessions) > 1 && c.sessions[0] == s
}

// roleOf says whether the session is the prober of others, whether there are others, and whether one of them has proved it lately, and goes on
// with it.
func (c *sharedProof) roleOf(s *Session, now instant) (leads, accompanied, proved bool) {
	if c == nil {
		return false, false, false
	}
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	leads, accompanied = c.sessions[0] == s, len(c.sessions) > 1
	return leads && accompanied, accompanied, accompanied && !leads && c.proved != 0 && now.since(c.proved) < 2*s.interval
}

// others are the sessions but this one.
func (c *sharedProof) others(s *Session) []*Session {
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.sessions), func(other *Session) bool { return other == s })
}

// pass makes the next session the prober if this one is, since no answer comes to its heartbeat, or none that counts. If none comes to
// another's either for half an interval, contact is late for all: at once where they do not bear to lose contact for two intervals.
func (c *sharedProof) pass(s *Session) {
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	if len(c.sessions) < 2 || c.sessions[0] != s {
		return
	}
	c.sessions = append(c.sessions[1:], s)
	if c.doubt == nil {
		patience := s.interval / 2
		if s.client.config.Validity(c.key.timeout).Silence < 2*s.interval {
			patience = 0
		}
		c.doubt = time.AfterFunc(patience, c.tellDoubt)
	}
	c.sessions[0].summon()
}

func (c *sharedProof) tellDoubt() {
	c.sharedProofs.mu.Lock()
	stands, sessions := c.doubt != nil, slices.Clone(c.sessions)
	c.sharedProofs.mu.Unlock()
	if stands {
		for _, each := range sessions {
			each.beDoubted(c)
		}
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

// accepts says whether a session proves the others: the prober, or one that was it when its heartbeat became late.
func (c *sharedProof) accepts(s *Session, shown sharedHeartbeat) bool {
	c.sharedProofs.mu.Lock()
	defer c.sharedProofs.mu.Unlock()
	if len(c.sessions) == 0 || c.sessions[0] != s && c.doubt == nil {
		return false
	}
	c.settle()
	if shown.sent.since(shown.of) < 2*s.interval {
		c.proved = s.now()
	}
	return true
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

package zookeeper

import (
	"errors"
	"maps"
	"sync"
	"time"
)

const (
	// silentAfter is how long a handshake may take before others need not wait for it; a server that is well answers within a few
	// milliseconds.
	silentAfter = 200 * time.Millisecond
	// avoidedFor is how long a server that has not answered by then is avoided while there are others.
	avoidedFor = 5 * time.Second
)

var (
	errSilent = errors.New("server was silent just now")
	errHungUp = errors.New("it closes the connection instead of answering")
)

// A silentServers is which servers left a handshake unanswered, whoever's it was: each session that finds out for itself loses a good
// part of its time.
type silentServers struct {
	servers *serverList

	mu      sync.Mutex
	since   map[string]time.Time
	refused map[string]time.Time // servers that refused a connection or closed it at once; asking them costs next to nothing
	why     map[string]error     // of those that have not answered since
}

func newSilentServers(servers *serverList) *silentServers {
	return &silentServers{servers: servers, since: make(map[string]time.Time), refused: make(map[string]time.Time), why: make(map[string]error)}
}

func (s *silentServers) begin(server string) { s.beginUnless(server, func() bool { return false }) }

// beginUnless begins a silence, but not once the handshake is over: end would have come before.
func (s *silentServers) beginUnless(server string, over func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !over() {
		s.since[server] = time.Now()
	}
}

// end takes in that a server has answered.
func (s *silentServers) end(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, server)
	delete(s.refused, server)
	delete(s.why, server)
}

// refuse takes in that a server was not to be had. It is not avoided for it, but it is no reason either to avoid the others.
func (s *silentServers) refuse(server string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[server], s.why[server] = time.Now(), why
}

func (s *silentServers) whyRefused(server string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why[server]
}

// note begins or ends a silence.
func (s *silentServers) note(server string, answers bool) {
	if answers {
		s.end(server)
	} else {
		s.begin(server)
	}
}

// avoids says whether a session should go to another server: not if there is none that may answer.
func (s *silentServers) avoids(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	forget(s.since)
	forget(s.refused)
	_, silent := s.since[server]
	if !silent {
		return false
	}
	unavailable := len(s.since)
	for other := range s.refused {
		if _, counted := s.since[other]; !counted {
			unavailable++
		}
	}
	return unavailable < s.servers.count()
}

// forget removes what was noted too long ago to be believed.
func forget(noted map[string]time.Time) {
	maps.DeleteFunc(noted, func(_ string, at time.Time) bool { return time.Since(at) >= avoidedFor })
}

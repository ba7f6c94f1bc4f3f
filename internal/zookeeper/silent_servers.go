package zookeeper

import (
	"errors"
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

var errSilent = errors.New("server was silent just now")

// Silences are the servers that left a handshake unanswered, whoever's it was: each session that finds out for itself loses a good
// part of its time.
type silentServers struct {
	servers int // that there are

	mu    sync.Mutex
	since map[string]time.Time
}

func (s *silentServers) begin(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since[server] = time.Now()
}

func (s *silentServers) end(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, server)
}

// note begins or ends a silence.
func (s *silentServers) note(server string, answers bool) {
	if answers {
		s.end(server)
	} else {
		s.begin(server)
	}
}

// avoids says whether a session should go to another server.
func (s *silentServers) avoids(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	silent := 0
	for other, since := range s.since {
		if time.Since(since) < avoidedFor {
			silent++
		} else {
			delete(s.since, other)
		}
	}
	_, is := s.since[server]
	return is && silent < s.servers
}

package ensemble

import (
	"context"
	"io"
	"net"
	"regexp"
	"strconv"
	"time"
)

// A Role is what a server is in its ensemble.
type Role string

// The roles of a server.
const (
	Leader     Role = "leader"
	Follower   Role = "follower"
	Standalone Role = "standalone"
	// Looking is the role of a server that answers but serves no clients, as it has no leader.
	Looking Role = "looking"
	// Silent is the role of a server that does not answer: it does not run, or is frozen.
	Silent Role = "silent"
)

// serving tells whether a server in the role serves clients.
func (r Role) serving() bool { return r == Leader || r == Follower || r == Standalone }

// answerTime is how long a server that does not answer is waited for.
const answerTime = time.Second

// Role asks the server for its role, past its link. A leader that has been cut from its followers does not know for up to
// SyncLimit ticks.
func (s *Server) Role(ctx context.Context) Role { return s.status(ctx).role }

// Ask sends the server a four-letter word, past its link, and returns its answer. It gives up after a second.
func (s *Server) Ask(ctx context.Context, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.RealAddress())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// A status is what a server says of itself.
type status struct {
	server    *Server
	role      Role
	epoch     uint64 // that of its last transaction
	followers int    // that are up to date, if it is a leader
}

var (
	modeLine      = regexp.MustCompile(`(?m)^Mode: (\w+)$`)
	zxidLine      = regexp.MustCompile(`(?m)^Zxid: 0x([0-9a-f]+)$`)
	followersLine = regexp.MustCompile(`(?m)^zk_synced_followers\s+(\d+)`)
)

// status asks the server how it is.
func (s *Server) status(ctx context.Context) status {
	found := status{server: s, role: Silent}
	if s.asleep() {
		return found
	}
	text, err := s.Ask(ctx, "srvr")
	if err != nil {
		return found
	}
	found.role = Looking
	if mode := match(modeLine, text); mode != "" {
		found.role = Role(mode)
	}
	zxid, _ := strconv.ParseUint(match(zxidLine, text), 16, 64) // 0 if it does not serve
	found.epoch = zxid >> 32
	if found.role == Leader {
		text, _ = s.Ask(ctx, "mntr") // which costs a server more than all else it is asked
		found.followers, _ = strconv.Atoi(match(followersLine, text))
	}
	return found
}

// listens tells whether the server takes connections of the clients that are to use it.
func (s *Server) listens(ctx context.Context) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.clientPort().address())
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// match is what a line's only group has matched, empty if there is no such line.
func match(line *regexp.Regexp, text string) string {
	if groups := line.FindStringSubmatch(text); groups != nil {
		return groups[1]
	}
	return ""
}

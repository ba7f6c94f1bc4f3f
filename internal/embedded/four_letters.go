package embedded

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// version is the ZooKeeper release whose behaviour this is, for clients that look at it.
const version = "3.9.5-embedded-in-sidekeeper, built on 01/01/2026 00:00 UTC"

// commands are what a client may ask with four letters instead of a session.
var commands = map[string]func(*Server) string{
	"ruok": func(*Server) string { return "imok" },
	"srvr": (*Server).summary,
	"stat": func(s *Server) string {
		return versionLine() + "Clients:\n" + s.clients((*connection).brief) + "\n" + s.figures()
	},
	"cons": func(s *Server) string { return s.clients((*connection).full) + "\n" },
	"mntr": (*Server).monitor,
	"dump": (*Server).dump,
	"wchs": (*Server).watches,
	"wchp": (*Server).watchesByPath,
	"conf": (*Server).configuration,
	"envi": func(*Server) string { return "Environment:\nzookeeper.version=" + version + "\n" },
	"isro": func(*Server) string { return "rw" },
}

// command answers a command and says whether it was one.
func (c *connection) command(letters string) bool {
	answer, known := commands[letters]
	if !known {
		return false
	}
	c.server.ensemble.mu.Lock()
	defer c.server.ensemble.mu.Unlock()
	c.received++
	c.server.received++
	c.queue([]byte(answer(c.server)))
	return true
}

func versionLine() string { return "Zookeeper version: " + version + "\n" }

func (s *Server) summary() string { return versionLine() + s.figures() }

func (s *Server) figures() string {
	return fmt.Sprintf(
		"Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\nZxid: 0x%x\n"+
			"Mode: standalone\nNode count: %d\n",
		s.received, s.sent, len(s.connections), s.ensemble.zxid, s.nodeCount())
}

func (s *Server) nodeCount() int { return len(s.ensemble.tree.nodes) }

// clients lists the connections, each as describe shows it, in the order of their addresses.
func (s *Server) clients(describe func(*connection) string) string {
	lines := make([]string, 0, len(s.connections))
	for c := range s.connections {
		lines = append(lines, " "+describe(c)+")\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (c *connection) brief() string {
	return fmt.Sprintf("/%s[1](queued=0,recved=%d,sent=%d", c.socket.RemoteAddr(), c.received, c.sent)
}

func (c *connection) full() string {
	if c.session == nil {
		return c.brief()
	}
	return c.brief() + fmt.Sprintf(
		",sid=0x%x,lop=%s,est=%d,to=%d,lcxid=0x%x,lzxid=0x%x,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0",
		uint64(c.session.id), c.lastOperation, c.established.UnixMilli(), c.session.timeout.Milliseconds(),
		uint32(c.lastXid), c.lastZxid)
}

func (s *Server) watches() string {
	e := s.ensemble
	connections := map[watcher]struct{}{}
	paths := map[string]struct{}{}
	for _, table := range []*watchTable{e.nodeWatches, e.childWatches} {
		for w := range table.byWatcher {
			connections[w] = struct{}{}
		}
		for path := range table.byPath {
			paths[path] = struct{}{}
		}
	}
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n\n",
		len(connections), len(paths), s.watchCount())
}

// watchesByPath lists the watched nodes, each with the sessions that watch it. As in ZooKeeper, watches of children are left out.
func (s *Server) watchesByPath() string {
	lines := map[string][]string{}
	for path, watchers := range s.ensemble.nodeWatches.byPath {
		for w := range watchers {
			if c, remote := w.(*connection); remote && c.session != nil {
				lines[path] = append(lines[path], fmt.Sprintf("\t0x%x\n", uint64(c.session.id)))
			}
		}
	}
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(lines)) {
		slices.Sort(lines[path])
		out.WriteString(path + "\n" + strings.Join(slices.Compact(lines[path]), ""))
	}
	return out.String() + "\n"
}

// dump lists the sessions, and the nodes that go with each.
func (s *Server) dump() string {
	e := s.ensemble
	var out strings.Builder
	fmt.Fprintf(&out, "SessionTracker dump:\nSession Sets (1)/(%d):\n%d expire at some time:\n", len(e.sessions), len(e.sessions))
	for _, id := range slices.Sorted(maps.Keys(e.sessions)) {
		fmt.Fprintf(&out, "\t0x%x\n", uint64(id))
	}
	fmt.Fprintf(&out, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(e.tree.ephemerals))
	for _, id := range slices.Sorted(maps.Keys(e.tree.ephemerals)) {
		fmt.Fprintf(&out, "0x%x:\n", uint64(id))
		for _, path := range e.ephemeralsOf(id) {
			out.WriteString("\t" + path + "\n")
		}
	}
	return out.String()
}

func (s *Server) watchCount() int {
	return s.ensemble.nodeWatches.count() + s.ensemble.childWatches.count()
}

func (s *Server) monitor() string {
	e := s.ensemble
	owned, size := 0, 0
	for _, paths := range e.tree.ephemerals {
		owned += len(paths)
	}
	for path, n := range e.tree.nodes {
		size += len(path) + len(n.data)
	}
	var out strings.Builder
	for _, figure := range []struct {
		name  string
		value any
	}{
		{"version", version},
		{"server_state", "standalone"},
		{"num_alive_connections", len(s.connections)},
		{"outstanding_requests", 0},
		{"packets_received", s.received},
		{"packets_sent", s.sent},
		{"avg_latency", 0.0},
		{"min_latency", 0},
		{"max_latency", 0},
		{"znode_count", s.nodeCount()},
		{"watch_count", s.watchCount()},
		{"ephemerals_count", owned},
		{"approximate_data_size", size},
		{"global_sessions", len(e.sessions)},
	} {
		fmt.Fprintf(&out, "zk_%s\t%v\n", figure.name, figure.value)
	}
	return out.String()
}

func (s *Server) configuration() string {
	host, port, _ := strings.Cut(s.Address(), ":")
	tick := s.ensemble.options.Tick.Milliseconds()
	return fmt.Sprintf("clientPort=%s\nclientPortAddress=%s\ntickTime=%d\nmaxClientCnxns=%d\n"+
		"minSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=0\n", port, host, tick, s.limit, 2*tick, 20*tick)
}

package embedded

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// A goScript is a script whose clients are go-zookeeper's, each behind a link of its own.
type goScript struct {
	t       *testing.T
	address string
	show    *display
	clients map[string]*goClient
}

func newGoScript(t *testing.T, address, root string) player {
	t.Helper()
	s := &goScript{t: t, address: address, clients: map[string]*goClient{}}
	s.show = &display{root: "", sessions: map[int64]string{}}
	s.run("0 create " + root + " -")
	_, stat, err := s.clients["0"].Exists(root)
	if err != nil {
		t.Fatal(err)
	}
	s.show.root, s.show.base = root, stat.Czxid
	return s
}

func (s *goScript) close() {
	for _, name := range slices.Sorted(maps.Keys(s.clients)) { // the same on every server
		s.clients[name].leave()
		s.clients[name].link.Close()
	}
}

func (s *goScript) run(line string) string {
	words := strings.Fields(line)
	name, verb, arguments := words[0], words[1], words[2:]
	c := s.clients[name]
	if c == nil {
		c = s.connect(name, verb, arguments)
	}
	perform, known := goVerbs[verb]
	if !known {
		panic("verb " + verb)
	}
	answer := perform(s, c, arguments)
	s.recognise(name, c.SessionID())
	return strings.Join(append(s.heard(c), answer), "\n")
}

// connect opens a client; "connect" may say its session timeout.
func (s *goScript) connect(name, verb string, arguments []string) *goClient {
	timeout := "15s"
	if verb == "connect" {
		timeout = argument(arguments, 0, timeout)
	}
	duration, err := time.ParseDuration(timeout)
	if err != nil {
		panic(err)
	}
	c := newGoClient(s.t, s.address, duration)
	s.clients[name] = c
	s.recognise(name, c.SessionID())
	s.heard(c) // that there is a session, which goes without saying
	return c
}

// recognise gives a client's session a name; those that come after the first one get strokes.
func (s *goScript) recognise(client string, session int64) {
	if _, known := s.show.sessions[session]; known || session == 0 {
		return
	}
	name := "s" + client
	for slices.Contains(slices.Collect(maps.Values(s.show.sessions)), name) {
		name += "'"
	}
	s.show.sessions[session] = name
}

// heard shows what a client was told since it was last asked: the events in their order, then which watch got which.
func (s *goScript) heard(c *goClient) []string {
	var lines []string
	for _, event := range c.events() {
		line := s.event(event)
		if event.Type == zk.EventSession && line != "" {
			if line == c.state {
				continue // another attempt to connect has failed
			}
			c.state = line
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	for _, fired := range c.fired() {
		lines = append(lines, "watch of "+fired.call+", "+s.event(fired.event))
	}
	return lines
}

// stateNames are the states that show; how often a client tried to connect does not.
var stateNames = map[zk.State]string{
	zk.StateDisconnected: "state: disconnected", zk.StateHasSession: "state: attached", zk.StateExpired: "state: expired",
}

func (s *goScript) event(event zk.Event) string {
	switch event.Type {
	case zk.EventSession:
		return stateNames[event.State]
	case zk.EventNotWatching:
		return "event: over " + s.show.path(event.Path) + " " + event.Err.Error()
	}
	return "event: " + eventNames[int32(event.Type)] + " " + s.show.path(event.Path)
}

package zookeeper

import (
	"testing"

	"go.uber.org/zap"
)

// Servers without a leader close connections as servers do that have too many: while the reader's session goes on it is the latter.
func TestOnlyRefusalsBesideAReaderThatIsServedAreAConnectionLimit(t *testing.T) {
	servers := []string{"one", "two", "three"}
	list := newServerList(servers, zap.NewNop())
	c := &Client{tree: tree{reader: &reader{changed: make(chan struct{})}}, servers: list, silentServers: newSilentServers(list)}
	attach := func() *view {
		v := newView(&Session{client: c, connectionState: connectionState{address: "one"}})
		c.reader.show(v)
		return v
	}
	s := c.newSession(0, false)
	refuse := func(servers ...string) {
		for _, s.address = range servers {
			s.handshakeRefused(nil)
		}
	}
	want := func(want bool, when string) {
		t.Helper()
		if got := s.isRefused(); got != want {
			t.Errorf("%s: refused %t", when, got)
		}
	}
	refuse(servers...)
	want(false, "without a reader")
	attach()
	want(false, "with what was refused before there was a reader")
	refuse("one", "two")
	want(false, "while one may take it")
	attach()
	refuse("three")
	want(false, "with what an election has refused")
	refuse("one", "two")
	want(true, "by all, beside the same reader")
	attach()
	want(false, "with another reader")
	last := attach()
	refuse(servers...)
	last.session.err = errReplaced
	want(false, "when the reader's session has ended too")
}

package txnlog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// logged is a server's log of creates, by zxid. What is created tells who wrote it.
func logged(author string, zxids ...int64) []Transaction {
	var all []Transaction
	for _, zxid := range zxids {
		read, err := readTransaction(transaction(1, 1, zxid, link.Create, created("/"+author, "", false)))
		if err != nil {
			panic(err)
		}
		all = append(all, read)
	}
	return all
}

func TestServersLogsAreOneOrder(t *testing.T) {
	const next = 1 << 32 // of the next leader
	for _, c := range []struct {
		name    string
		since   int64
		servers [][]Transaction
		want    string
		faults  int
		gaps    string
	}{
		{name: "three that agree", servers: [][]Transaction{logged("a", 1, 2, 3), logged("a", 1, 2, 3), logged("a", 1, 2, 3)}, want: " 1 2 3"},
		{name: "one that is late", servers: [][]Transaction{logged("a", 1, 2, 3), logged("a", 1, 2, 3), logged("a", 1)}, want: " 1 2 3"},
		{
			name:    "one with an end that nobody agreed to",
			servers: [][]Transaction{logged("a", 1, 2), logged("a", 1, 2, 3), logged("a", 1, 2)}, want: " 1 2",
		},
		{name: "one alone", servers: [][]Transaction{logged("a", 1, 2)}, want: " 1 2"},
		{
			name:    "one that got a snapshot in place of what the others have",
			servers: [][]Transaction{logged("a", 1, 2, 3, 4, 5), logged("a", 1, 5), logged("a", 1, 2, 3, 4)}, want: " 1 2 3 4 5",
		},
		{
			name:    "one that was cut off as the leader, and has come back by a snapshot",
			servers: [][]Transaction{logged("a", 1, 2, 3, next+2), logged("a", 1, next+1, next+2), logged("a", 1, next+1, next+2)},
			want:    " 1 100000001 100000002",
		},
		{name: "another leader", servers: [][]Transaction{logged("a", 1, 2, next+1), logged("a", 1, 2, next+1), nil}, want: " 1 2 100000001"},
		{name: "from the middle on", since: 7, servers: [][]Transaction{logged("a", 8, 9), logged("a", 8, 9)}, want: " 8 9"},
		{
			name:    "two that say different things",
			servers: [][]Transaction{logged("a", 1, 2), logged("b", 1, 2), logged("a", 1, 2)}, want: " 1 2", faults: 2,
		},
		{
			name:    "one that goes back",
			servers: [][]Transaction{logged("a", 1, 3, 2), logged("a", 1, 2, 3)}, want: " 1 3", faults: 1, gaps: "0x2 to 0x2",
		},
		{name: "one that repeats itself", servers: [][]Transaction{logged("a", 1, 1), logged("a", 1)}, want: " 1", faults: 1},
		{name: "something that nobody has", servers: [][]Transaction{logged("a", 1, 4), logged("a", 1, 4)}, want: " 1 4", gaps: "0x2 to 0x3"},
		{name: "no beginning", servers: [][]Transaction{logged("a", 3), logged("a", 3)}, want: " 3", gaps: "0x1 to 0x2"},
		{
			name:    "a leader whose first is missing",
			servers: [][]Transaction{logged("a", 1, next+2), logged("a", 1, next+2)}, want: " 1 100000002", gaps: "0x100000001 to 0x100000001",
		},
	} {
		l := merge(c.since, c.servers)
		if got := zxids(l.Transactions); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
		if len(l.Faults) != c.faults {
			t.Errorf("%s: faults %q", c.name, l.Faults)
		}
		if got := strings.Join(l.Gaps, ", "); got != c.gaps {
			t.Errorf("%s: gaps %q, not %q", c.name, got, c.gaps)
		}
	}
}

// inWords is what became of a node.
func (l *Life) inWords() string {
	text := fmt.Sprintf("%s made %d owner %d", l.Path, l.Made.Zxid, l.Owner)
	for _, w := range l.Writes {
		text += fmt.Sprintf(" %d:%s@%d", w.Zxid, w.Data, w.Version)
	}
	switch {
	case l.Expired:
		text += fmt.Sprintf(" expired %d", l.Gone.Zxid)
	case l.Gone.Happened():
		text += fmt.Sprintf(" gone %d by %d", l.Gone.Zxid, l.GoneBy)
	}
	return text
}

func TestTheLivesOfNodesAreReplayed(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []record
		want    string
	}{
		{"a node that stays", []record{transaction(7, 1, 1, link.Create, created("/a", "x", false))}, "/a made 1 owner 0 1:x@0"},
		{
			"a node that is written and deleted",
			[]record{
				transaction(7, 1, 1, link.Create, created("/a", "x", false)),
				transaction(8, 1, 2, link.SetData, written("/a", "y", 1)),
				transaction(9, 1, 3, link.Delete, record{}.string("/a")),
			},
			"/a made 1 owner 0 1:x@0 2:y@1 gone 3 by 9",
		},
		{
			"a node that is made anew",
			[]record{
				transaction(7, 1, 1, link.Create, created("/a", "x", false)),
				transaction(7, 2, 2, link.Delete, record{}.string("/a")),
				transaction(7, 3, 3, link.Create, created("/a", "z", true)),
			},
			"/a made 1 owner 0 1:x@0 gone 2 by 7; /a made 3 owner 7 3:z@0",
		},
		{
			"a session that expires",
			[]record{
				transaction(7, 1, 1, link.Create, created("/a", "", true)),
				transaction(8, 1, 2, link.Create, created("/b", "", true)),
				transaction(7, 0, 3, link.CloseSession, record{}.strings("/a")),
			},
			"/a made 1 owner 7 1:@0 expired 3; /b made 2 owner 8 2:@0",
		},
		{
			"a session that is closed, whose leader knew of no path",
			[]record{
				transaction(7, 1, 1, link.Create, created("/a", "", true)),
				transaction(7, 2, 2, link.CloseSession, record{}.strings()),
			},
			"/a made 1 owner 7 1:@0 gone 2 by 7",
		},
		{
			"a session that began before the log",
			[]record{transaction(7, 0, 3, link.CloseSession, record{}.strings("/older"))},
			"",
		},
		{
			"an owned node that was deleted and made by another session",
			[]record{
				transaction(7, 1, 1, link.Create, created("/a", "", true)),
				transaction(7, 2, 2, link.Delete, record{}.string("/a")),
				transaction(8, 1, 3, link.Create, created("/a", "", true)),
				transaction(7, 0, 4, link.CloseSession, record{}.strings()),
			},
			"/a made 1 owner 7 1:@0 gone 2 by 7; /a made 3 owner 8 3:@0",
		},
		{
			"a container that the leader removes",
			[]record{
				transaction(7, 1, 1, link.CreateContainer, append(record{}.string("/c").string(""), record{}.openACL().int32(1)...)),
				transaction(0, 0, 2, deleteContainer, record{}.string("/c")),
			},
			"/c made 1 owner 0 1:@0 gone 2 by 0",
		},
		{"a request that failed", []record{transaction(7, 1, 1, failure, record{}.int32(-110))}, ""},
	} {
		transactions, err := parse(logOf(c.entries...))
		must(t, err)
		var lives []string
		for _, life := range merge(0, [][]Transaction{transactions}).Lives() {
			lives = append(lives, life.inWords())
		}
		if got := strings.Join(lives, "; "); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}

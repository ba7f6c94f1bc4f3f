package ensemble

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// serversDialThroughLinksOnly looks at the kernel's table of connections: whoever has dialled a port that a server binds
// for its peers must be this process, whose links do.
func serversDialThroughLinksOnly(t *testing.T, e *Ensemble) {
	ours := ownSockets(t)
	bound := map[int64]bool{}
	for _, s := range e.Servers() {
		bound[int64(s.ports.quorum.number)], bound[int64(s.ports.election.number)] = true, true
	}
	seen := 0
	for _, each := range connections(t) {
		if !bound[each.remote] {
			continue
		}
		seen++
		if !ours[each.inode] {
			t.Errorf("a server has dialled port %d past the links", each.remote)
		}
	}
	if seen < 3 { // two followers, and a follower that has asked who leads
		t.Errorf("%d connections between servers", seen)
	}
}

// A connection is one end of an established connection.
type connection struct {
	remote int64
	inode  string
}

func connections(t *testing.T) []connection {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	const established = "01"
	var found []connection
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if fields[3] != established {
			continue
		}
		_, port, _ := strings.Cut(fields[2], ":")
		number, err := strconv.ParseInt(port, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, connection{remote: number, inode: fields[9]})
	}
	return found
}

// ownSockets is the inodes of the sockets this process has open.
func ownSockets(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, entry := range entries {
		target, _ := os.Readlink("/proc/self/fd/" + entry.Name()) // the one of the directory itself is gone
		var inode string
		if _, err := fmt.Sscanf(target, "socket:[%s", &inode); err == nil {
			found[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return found
}

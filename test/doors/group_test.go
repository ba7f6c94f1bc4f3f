package doors

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// A group is a control group below the one of this process, whose limit the kernel enforces as it does in a pod.
type group struct {
	folder string
	most   string // the file with the most that was used
}

// newGroup makes one, and returns nil where that is not possible: without root, on another system, or with groups that are for others.
func newGroup(t *testing.T, limit int) *group {
	t.Helper()
	of, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(of)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		version := map[string]struct{ root, limit, most string }{
			"memory": {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"},
			"":       {"/sys/fs/cgroup", "memory.max", "memory.peak"},
		}[fields[1]]
		if version.root == "" {
			continue
		}
		made, err := os.MkdirTemp(filepath.Join(version.root, fields[2]), "doors-")
		if err != nil {
			continue
		}
		g := &group{made, filepath.Join(made, version.most)}
		if os.WriteFile(filepath.Join(made, version.limit), []byte(strconv.Itoa(limit)), 0) != nil {
			_ = os.Remove(made)
			continue
		}
		t.Cleanup(func() { g.remove(t) })
		return g
	}
	return nil
}

func (g *group) entrance() string { return filepath.Join(g.folder, "cgroup.procs") }

func (g *group) peak() (bytes int) {
	text, _ := os.ReadFile(g.most) // 0 tells it
	_, _ = fmt.Sscan(string(text), &bytes)
	return bytes
}

// remove takes the group away. The kernel may still be busy with a process that has just ended.
func (g *group) remove(t *testing.T) {
	t.Helper()
	err := os.Remove(g.folder)
	for range 100 {
		if err == nil || os.IsNotExist(err) {
			return
		}
		<-time.After(20 * time.Millisecond)
		err = os.Remove(g.folder)
	}
	expect.Must(t, err)
}

// It looks inside: what a request is come back to with is decided before anything is told of it.

package service

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/zap"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/journal"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// What waits has no token yet: it is known by the number of its request, and goes on with the place that this has.
func TestWhoWaitsComesBackToItsOwnPlace(t *testing.T) {
	t.Parallel()
	node := func(path string, token int64, data string) recipes.Standing {
		return recipes.Standing{Path: path, Node: recipes.Node{Data: []byte(data), Czxid: token}}
	}
	standing := []recipes.Standing{
		node("/held", 5, `{"sidekeeper":1,"request":1}`),
		node("/waits", 6, `{"sidekeeper":1,"request":2}`),
		node("/other", 7, `{"sidekeeper":1,"request":3}`),
	}
	for name, c := range map[string]struct {
		claim *leasev1.Claim
		want  string
	}{
		"a hold":                    {&leasev1.Claim{Start: &leasev1.Start{RequestId: 1}, Token: 5}, "/held"},
		"a wait":                    {&leasev1.Claim{Start: &leasev1.Start{RequestId: 2}}, "/waits"},
		"a wait that has no place":  {&leasev1.Claim{Start: &leasev1.Start{RequestId: 4}}, ""},
		"a hold with another token": {&leasev1.Claim{Start: &leasev1.Start{RequestId: 1}, Token: 4}, ""},
	} {
		claimed, rest := split(standing, c.claim)
		var paths string
		for _, of := range claimed {
			paths += of.Path
		}
		same(t, name, paths, c.want)
		same(t, name+": the rest", len(rest), len(standing)-len(claimed))
	}
}

// While the disk hangs, leases are opened that cannot be resumed, and none of them asks it.
func TestALeaseAsksNoDiskThatOthersWaitFor(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := &note{log: zap.NewNop(), disk: make(disk, 1)} // without a journal
		n.disk <- struct{}{}
		if n.begin() != nil {
			t.Error("it was begun")
		}
	})
}

// A record that comes late belongs to a lease that cannot be resumed. Its session is closed when the record is deleted.
func TestALeaseWhoseRecordComesLateCannotBeResumed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	kept, err := journal.Open(dir, "/", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	n := &note{kept: kept, key: "late", log: zap.NewNop(), disk: make(disk, 1), shared: newLatch(), forgotten: newLatch()}
	unfinished := filepath.Join(dir, "late.new")
	if err := syscall.Mkfifo(unfinished, 0o600); err != nil {
		t.Fatal(err)
	}
	made := &lease{note: n.begin()}
	same(t, "resumable", made.resumable(), false)
	same(t, "forgotten while it may come", isClosed(made.note.forgotten.closed), false)
	disk, err := os.OpenFile(unfinished, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	<-made.note.forgotten.closed
	n.disk <- struct{}{} // which is free
}

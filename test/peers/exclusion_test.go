package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	lockRoot = "/sidekeeper/locks/"
	each     = 4 // contenders of a library
)

// A crowd is contenders of one library for one lock, by recipe.
type crowd struct {
	library string
	recipes map[string]int
}

func alone(library, recipe string) crowd { return crowd{library, map[string]int{recipe: each}} }

func readersAndWriters(library string) crowd {
	return crowd{library, map[string]int{"read": each - 1, "write": 1}}
}

var (
	sidekeeperMutex = alone("sidekeeper", "mutex")
	curatorMutex    = alone("curator", "mutex")
	kazooShared     = alone("kazoo", "shared")
	directMutex     = alone("go-zookeeper", "lock")
	writeLock       = alone("zookeeper", "SharedWriteLock")
)

// withWriteLock are crowds of the libraries that do not overtake ZooKeeper's WriteLock.
var withWriteLock = []crowd{sidekeeperMutex, writeLock}

// everybody are crowds of all libraries.
var everybody = map[string][]crowd{
	"mutexes":             {sidekeeperMutex, curatorMutex, kazooShared, directMutex},
	"readers and writers": {readersAndWriters("sidekeeper"), readersAndWriters("curator"), readersAndWriters("kazoo")},
}

// claims are crowds of claims and of all libraries.
var claims = map[string][]crowd{
	"claims and mutexes": {{"sidekeeper", map[string]int{"mutex": each / 2, "claim": each / 2}}, curatorMutex, kazooShared, directMutex},
	"claims, readers and writers": {
		{"sidekeeper", map[string]int{"read": 1, "write": 1, "claim-read": 1, "claim-write": 1}},
		readersAndWriters("curator"), readersAndWriters("kazoo"),
	},
}

func TestContendersOfTwoLibrariesExcludeEachOther(t *testing.T) {
	s := realStage(t, 2)
	peers := s.all(t)
	peers["zookeeper"] = s.contenders(t, "zookeeper")
	for name, crowds := range map[string][]crowd{
		"Curator":                   {sidekeeperMutex, curatorMutex},
		"kazoo's shared lock":       {sidekeeperMutex, kazooShared},
		"kazoo's lock with pattern": {sidekeeperMutex, alone("kazoo", "patterns")},
		"go-zookeeper":              {sidekeeperMutex, directMutex},
		"ZooKeeper's WriteLock":     withWriteLock,
		"Curator's read/write lock": {readersAndWriters("sidekeeper"), readersAndWriters("curator")},
		"kazoo's read/write lock":   {readersAndWriters("sidekeeper"), readersAndWriters("kazoo")},
	} {
		t.Run(name, func(t *testing.T) { contend(t, peers, *acquisitions, crowds...) })
	}
}

func TestContendersOfAllLibrariesExcludeEachOther(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		peers := s.all(t)
		for name, crowds := range everybody {
			t.Run(name, func(t *testing.T) { contend(t, peers, *acquisitions, crowds...) })
		}
	})
}

func TestClaimsAndContendersOfAllLibrariesExcludeEachOther(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		peers := s.all(t)
		for name, crowds := range claims {
			t.Run(name, func(t *testing.T) { contend(t, peers, *acquisitions, crowds...) })
		}
	})
}

// The embedded ensemble is one also for contenders that know nothing of us.
func TestContendersOfOneLibraryExcludeEachOther(t *testing.T) {
	s := stage{servers: []string{startEmbedded(t)}}
	for _, one := range []crowd{curatorMutex, directMutex, alone("kazoo", "lock")} {
		t.Run(one.library, func(t *testing.T) {
			contend(t, map[string]*peer{one.library: s.contenders(t, one.library)}, 60, one)
		})
	}
}

// all starts a program for each library.
func (s stage) all(t *testing.T) map[string]*peer {
	t.Helper()
	peers := s.foreign(t)
	peers["sidekeeper"] = s.contenders(t, "sidekeeper")
	return peers
}

// foreign starts a program for each library that is not ours.
func (s stage) foreign(t *testing.T) map[string]*peer {
	t.Helper()
	peers := map[string]*peer{}
	for _, library := range []string{"curator", "kazoo", "go-zookeeper"} {
		peers[library] = s.contenders(t, library)
	}
	return peers
}

// mixings is how often libraries are given the chance to meet: who is quick may be done before the others have begun.
const mixings = 3

// contend has crowds hold one lock so often, all together. They must have contended, those of each library with those of
// the others; no two that exclude each other may have held it at once, and no count may be lost.
func contend(t *testing.T, peers map[string]*peer, total int, crowds ...crowd) {
	t.Helper()
	var apart string
	for range mixings {
		if apart = keptApart(contendOnce(t, peers, total, crowds...), crowds); apart == "" {
			return
		}
	}
	t.Error(apart)
}

// keptApart says in what libraries did not meet.
func keptApart(c tally, crowds []crowd) string {
	switch {
	case len(crowds) > 1 && c.across < c.holds/10:
		return fmt.Sprintf("only %d of %d acquisitions followed one of another library", c.across, c.holds)
	case crowds[0].recipes["read"] > 0 && c.shared == 0:
		return "no two readers of different libraries ever read together"
	}
	return ""
}

func contendOnce(t *testing.T, peers map[string]*peer, total int, crowds ...crowd) tally {
	t.Helper()
	holds, folder := contendAt(t, peers, contended(lockRoot), total, crowds...)
	judge(t, holds, folder)
	c := count(holds)
	if c.contended < c.holds*3/4 {
		t.Errorf("%d of %d acquisitions were contended", c.contended, c.holds)
	}
	return c
}

// contendAt has crowds hold what is at a path so often, all together, and returns when each did.
func contendAt(t *testing.T, peers map[string]*peer, path string, total int, crowds ...crowd) (holds []hold, folder string) {
	t.Helper()
	folder = gather(t, peers, path, crowds...)
	rounds := (total + each*len(crowds) - 1) / (each * len(crowds))
	var group errgroup.Group
	for _, crowd := range crowds {
		group.Go(func() error {
			wait := patience + time.Duration(total)*100*time.Millisecond
			answer, err := peers[crowd.library].order(wait, "contend", rounds, folder)
			if err == nil && answer != "counted" {
				err = fmt.Errorf("%s at %s: %s", crowd.library, path, answer)
			}
			return err
		})
	}
	must(t, group.Wait())
	holds, err := readHolds(folder, "")
	must(t, err)
	must(t, killedAt(holds, nil))
	t.Log(count(holds))
	if want := rounds * each * len(crowds); len(holds) != want {
		t.Errorf("%d acquisitions, want %d", len(holds), want)
	}
	return holds, folder
}

// contentions numbers what was contended for.
var contentions atomic.Int64

// contended is a path that was not used before.
func contended(root string) string { return fmt.Sprint(root, "contended-", contentions.Add(1)) }

// gather makes the contenders, and the counter that they guard.
func gather(t *testing.T, peers map[string]*peer, path string, crowds ...crowd) (folder string) {
	t.Helper()
	folder = t.TempDir()
	must(t, setCounter(folder, 0))
	for _, crowd := range crowds {
		for recipe, contenders := range crowd.recipes {
			expect(t, peers[crowd.library], "gathered", "gather", recipe, path, contenders)
		}
	}
	return folder
}

// judge fails the test if holds of those who exclude each other overlap, or if a count was lost. Who was killed may have
// counted before it could note that it had.
func judge(t *testing.T, holds []hold, folder string, killed ...string) {
	t.Helper()
	if violations := overlaps(holds); len(violations) > 0 {
		t.Errorf("%d overlaps: %s", len(violations), strings.Join(violations[:min(5, len(violations))], "; "))
	}
	got, err := counted(folder)
	must(t, err)
	writes := 0
	for _, h := range holds {
		if !h.reads {
			writes++
		}
	}
	if got > writes || got < writes-each*len(killed) {
		t.Errorf("%d counted in %d holds, %q killed: some did not see what others had written", got, writes, killed)
	}
	if t.Failed() {
		keep(t, folder)
	}
}

// keep copies what the contenders noted to where KEEP_TEST_LOGS says.
func keep(t *testing.T, folder string) {
	t.Helper()
	if to := os.Getenv("KEEP_TEST_LOGS"); to != "" {
		must(t, os.CopyFS(filepath.Join(to, filepath.Base(filepath.Dir(folder))), os.DirFS(folder)))
	}
}

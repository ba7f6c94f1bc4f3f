package peers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// mortal is how long sessions of the dead last: short, but longer than a busy machine makes anybody wait.
const mortal = 4 * time.Second

// A victim is a program whose callers end in the middle, with what else must die for that.
type victim struct {
	*peer

	library string
	strike  func()
}

func TestTheOthersGoOnWhenOneIsKilledInTheMiddle(t *testing.T) {
	s := realStage(t, 1)
	survivors := s.all(t)
	survivors["zookeeper"] = s.contenders(t, "zookeeper")
	for _, library := range []string{"sidekeeper", "the sidecar", "curator", "kazoo", "go-zookeeper"} {
		t.Run(library, func(t *testing.T) {
			for i := range *kills {
				kill(t, survivors, everybody["mutexes"], doom(t, s, library), i%2 == 0)
			}
		})
	}
	for _, library := range []string{"sidekeeper", "zookeeper"} {
		t.Run(library+", beside WriteLock", func(t *testing.T) {
			for i := range *kills {
				kill(t, survivors, withWriteLock, doom(t, s, library), i%2 == 0)
			}
		})
	}
}

// kill has contenders of these libraries hold one lock in turn, until one of their processes is killed; then the others must
// still get what they want, and no two may ever hold it at once. It is killed while it holds the lock, or at any moment.
func kill(t *testing.T, survivors map[string]*peer, crowds []crowd, dying victim, holding bool) {
	t.Helper()
	all := maps.Clone(survivors)
	all["the victim"] = dying.peer
	own := crowds[slices.IndexFunc(crowds, func(c crowd) bool { return c.library == dying.library })]
	folder := gather(t, all, contended(lockRoot), append(slices.Clone(crowds), crowd{"the victim", own.recipes})...)
	must(t, os.WriteFile(going(folder), nil, 0o600))
	const rounds = 1
	var group, ending errgroup.Group
	ending.Go(func() error {
		answer, err := dying.order(patience, "contend", rounds, folder)
		if err == nil && !strings.HasPrefix(answer, "failed") {
			return fmt.Errorf("the victim says %s", answer)
		}
		return nil
	})
	for _, crowd := range crowds {
		group.Go(func() error {
			answer, err := survivors[crowd.library].order(patience, "contend", rounds, folder)
			if err == nil && answer != "counted" {
				err = fmt.Errorf("%s: %s", crowd.library, answer)
			}
			return err
		})
	}
	awaitMiddle(t, folder, dying.process(), each*len(crowds)+rand.IntN(each*len(crowds)), holding)
	moment := now()
	dying.strike()
	must(t, os.Remove(going(folder)))
	must(t, ending.Wait())
	must(t, group.Wait())
	examine(t, folder, dying, moment)
}

// doom starts a program that will be killed, or whose sidecar will.
func doom(t *testing.T, s stage, library string) victim {
	t.Helper()
	if library != "the sidecar" {
		p := s.contendersFor(t, library, mortal)
		return victim{p, library, p.kill}
	}
	doomed := startSidecar(t, s.servers, "--session-timeout="+mortal.String())
	p := stage{servers: s.servers, sidecars: []string{doomed.address()}}.contenders(t, "sidekeeper")
	return victim{p, "sidekeeper", doomed.kill}
}

// process is what the victim's holds are noted under.
func (v victim) process() string { return fmt.Sprintf("%s-%d", v.library, v.command.Process.Pid) }

// awaitMiddle returns when the lock was held so often, and by the victim too; while that is holding it, if that is asked for.
func awaitMiddle(t *testing.T, folder, process string, want int, holding bool) {
	t.Helper()
	awaitHolds(t, folder, "", func(holds []hold) bool { return len(holds) >= want })
	awaitHolds(t, folder, process, func(holds []hold) bool {
		return len(holds) > 0 && (!holding || slices.ContainsFunc(holds, hold.lasts))
	})
}

func awaitHolds(t *testing.T, folder, process string, enough func([]hold) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		holds, err := readHolds(folder, process)
		must(t, err)
		if enough(holds) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d holds of %q are not what they must become", len(holds), process)
		}
		<-time.After(500 * time.Microsecond)
	}
}

func examine(t *testing.T, folder string, dying victim, moment int64) {
	t.Helper()
	holds, err := readHolds(folder, "")
	must(t, err)
	process := dying.process()
	held := slices.ContainsFunc(holds, hold.lasts)
	must(t, killedAt(holds, map[string]int64{process: moment}))
	judge(t, holds, folder, process)
	next := slices.IndexFunc(holds, func(h hold) bool { return h.begin > moment && h.process != process })
	if next < 0 {
		t.Fatal("nobody held the lock afterwards")
	}
	t.Logf("%v; the victim held it then: %v; somebody else did %v later", count(holds), held, time.Duration(holds[next].begin-moment))
}

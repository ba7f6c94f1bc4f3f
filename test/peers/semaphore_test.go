package peers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	semaphoreRoot  = "/sidekeeper/semaphores/"
	permitsAtATime = 3
)

// semaphore makes one that was not used before, and returns its path.
func (s stage) semaphore(t *testing.T, limit int) (path string) {
	t.Helper()
	name := fmt.Sprint("contended-", contentions.Add(1))
	must(t, dial(t, s.sidecars[0]).CreateSemaphore(t.Context(), name, limit))
	return semaphoreRoot + name
}

// takePermits has callers of ours and Curator's contenders take permits of one semaphore, and returns when each was held.
func takePermits(t *testing.T, limit int, ours, curators string) (holds []hold, folder string) {
	t.Helper()
	s := realStage(t, 2)
	path, folder := s.semaphore(t, limit), t.TempDir()
	must(t, setCounter(folder, 0))
	rounds := *acquisitions / (2 * each)
	peers := map[string]*peer{}
	for library, recipe := range map[string]string{"sidekeeper": ours, "curator": curators} {
		peers[library] = s.contenders(t, library)
		expect(t, peers[library], "gathered", "gather", recipe, path, each)
	}
	var group errgroup.Group
	for library, contenders := range peers {
		group.Go(func() error {
			answer, err := contenders.order(patience+time.Duration(*acquisitions)*100*time.Millisecond, "contend", rounds, folder)
			if err == nil && answer != "counted" {
				err = fmt.Errorf("%s: %s", library, answer)
			}
			return err
		})
	}
	must(t, group.Wait())
	holds, err := readHolds(folder, "")
	must(t, err)
	c := count(holds)
	t.Log(c)
	if c.holds != rounds*each*2 || c.across < c.holds/10 {
		t.Errorf("%d acquisitions, %d of them followed one of another library", c.holds, c.across)
	}
	return holds, folder
}

// Callers of ours and Curator's InterProcessSemaphoreV2 take permits of one semaphore, whose limit both read from its SharedCount.
func TestPermitsAreSharedWithCurator(t *testing.T) {
	holds, _ := takePermits(t, permitsAtATime, "permits", "permits")
	if most := mostAtATime(holds); most != permitsAtATime {
		t.Errorf("at most %d permits of %d were held at a time", most, permitsAtATime)
	}
}

// Curator's InterProcessSemaphoreMutex is a semaphore with one permit.
func TestASemaphoreWithOnePermitIsSharedWithCuratorsSemaphoreMutex(t *testing.T) {
	holds, folder := takePermits(t, 1, "permit", "semaphore")
	judge(t, holds, folder)
}

// mostAtATime is how many of the holds there were at most at one moment.
func mostAtATime(holds []hold) (most int) {
	type step struct {
		at   int64
		more int
	}
	var steps []step
	for _, h := range holds {
		steps = append(steps, step{h.begin, 1}, step{h.end, -1})
	}
	slices.SortFunc(steps, func(a, b step) int {
		if a.at != b.at {
			return int(min(1, max(-1, a.at-b.at)))
		}
		return a.more - b.more
	})
	now := 0
	for _, each := range steps {
		now += each.more
		most = max(most, now)
	}
	return most
}

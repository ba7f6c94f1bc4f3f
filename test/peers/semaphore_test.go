package peers

import (
	"slices"
	"strings"
	"testing"
)

const (
	semaphoreRoot  = "/sidekeeper/semaphores/"
	permitsAtATime = 3
)

// takePermits has callers of ours and Curator's contenders take permits of one semaphore, and returns when each was held.
func takePermits(t *testing.T, limit int, ours, curators string) (holds []hold, folder string) {
	t.Helper()
	s, path := realStage(t, 2), contended(semaphoreRoot)
	must(t, s.client(t).CreateSemaphore(t.Context(), strings.TrimPrefix(path, semaphoreRoot), limit))
	peers := map[string]*peer{"sidekeeper": s.contenders(t, "sidekeeper"), "curator": s.contenders(t, "curator")}
	holds, folder = contendAt(t, peers, path, *acquisitions, alone("sidekeeper", ours), alone("curator", curators))
	if c := count(holds); c.across < c.holds/10 {
		t.Errorf("%d acquisitions, %d of them followed one of another library", c.holds, c.across)
	}
	return holds, folder
}

// Callers of ours and Curator's InterProcessSemaphoreV2 take permits of one semaphore, whose limit both read from its SharedCount.
func TestPermitsAreSharedWithCurator(t *testing.T) {
	holds, _ := takePermits(t, permitsAtATime, "permits", "permits")
	if most := mostAtATime(holds); most > permitsAtATime || most < 2 { // whether all are ever held at once is a matter of luck
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

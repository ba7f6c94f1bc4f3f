package top

import "github.com/sidekeeper/sidekeeper/service"

// inCircle are the leases that wait for each other in a circle, as far as this sidecar knows by itself: whoever waits for a lock waits for each
// of its holders. What those of other sidecars do, `lock why` sees.
func inCircle(locks []service.LockState) map[string]bool {
	waitsFor := map[string][]string{}
	for _, lock := range locks {
		if lock.Kind != "lock" { // of permits, not every holder is waited for
			continue
		}
		for _, waiter := range lock.Waiters {
			for _, holder := range lock.Holders {
				waitsFor[waiter.LogID] = append(waitsFor[waiter.LogID], holder.LogID)
			}
		}
	}
	circle := map[string]bool{}
	for lease, holders := range waitsFor {
		circle[lease] = reaches(waitsFor, holders, lease, map[string]bool{})
	}
	return circle
}

// reaches says whether one of these leases is the wanted one, or waits for it through others.
func reaches(waitsFor map[string][]string, leases []string, wanted string, seen map[string]bool) bool {
	for _, lease := range leases {
		if lease == wanted {
			return true
		}
		if !seen[lease] {
			seen[lease] = true
			if reaches(waitsFor, waitsFor[lease], wanted, seen) {
				return true
			}
		}
	}
	return false
}

// isInCircle says whether one of these is.
func (v *view) isInCircle(parties []service.Party) bool {
	for _, one := range parties {
		if v.circle[one.LogID] {
			return true
		}
	}
	return false
}

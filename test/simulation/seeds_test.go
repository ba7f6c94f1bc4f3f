package simulation_test

import "testing"

// How many random schedules are played by default: as many as a commit may cost. `make schedules` plays more of them at night.
const (
	defaultSeeds   = 200 / oneIn
	mostReturns    = 20 / oneIn
	mostElections  = 40 / oneIn
	mostSemaphores = 40 / oneIn
	breaks         = 25 / oneIn
	memberships    = 12 / oneIn
)

// share is how many of n seeds are played: all, or with -short or the race detector a tenth, and one at least.
func share(n uint64) uint64 {
	if isBrief() {
		return (n + 9) / 10
	}
	return n
}

// isBrief says whether a test plays a part of what it usually plays.
func isBrief() bool { return oneIn > 1 || testing.Short() }

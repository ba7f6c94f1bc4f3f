package simulation_test

// How many random schedules are played by default.
const (
	defaultSeeds   = 1000 / oneIn
	mostReturns    = 150 / oneIn
	mostElections  = 60 / oneIn
	mostSemaphores = 60 / oneIn
	breaks         = 25 / oneIn
	memberships    = 12 / oneIn
)

// share is how many of n seeds are played: all, or with the race detector a tenth, and one at least.
func share(n uint64) uint64 { return (n + oneIn - 1) / oneIn }

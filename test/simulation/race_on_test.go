//go:build race

package simulation_test

// The race detector makes them many times slower.
const (
	defaultSeeds = 150
	mostReturns  = 25
)

//go:build race

package simulation_test

const defaultSeeds = 150 // the race detector makes them many times slower

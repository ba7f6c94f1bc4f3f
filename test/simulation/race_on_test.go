//go:build race

package simulation_test

// With the race detector, which makes them four times slower, one of so many schedules is played.
const oneIn = 10

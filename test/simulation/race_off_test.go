//go:build !race

package simulation_test

const oneIn = 1

//go:build race

package zookeeper

// With the race detector, which makes them four times slower and has nothing to see in them, one of so many schedules is played.
const oneIn = 10

package main

import (
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// A profile is the times of an ensemble and what follows from them.
type profile struct {
	name     string
	ensemble ensemble.Options
	flags    []string        // of sidecars
	timeouts []time.Duration // of sessions; rounds take turns
	steady   time.Duration   // of sessions, in rounds that must cost none

	warmUp time.Duration // before the first fault
	faults time.Duration // from the first to the last
	calm   time.Duration // afterwards, before callers stop

	rate     float64 // operations a second that a round must reach before the first fault
	forced   int     // hand-overs that a nemesis must force that forces any
	lifetime int     // rounds after which the ensemble is replaced, so that its logs do not grow for ever
}

// The names of profiles.
const (
	fastTicks = "fast"
	realTicks = "real"
	bothTicks = "both"
)

// profiles are those that rounds are played with. In both, a server that hears no more of its leader goes on answering for
// longer than sessions with the shortest timeout live.
var profiles = map[string]profile{
	fastTicks: {
		name:     fastTicks,
		ensemble: ofThree(200*time.Millisecond, 15),
		flags: []string{
			"--heartbeat=250ms", "--keepalive-time=1s", "--keepalive-timeout=1s", "--drain-timeout=1s", "--max-leases=5000",
		},
		timeouts: []time.Duration{2 * time.Second},
		steady:   15 * time.Second,
		warmUp:   2500 * time.Millisecond, faults: 8 * time.Second, calm: 1500 * time.Millisecond,
		rate: 20, forced: 6, lifetime: 12,
	},
	realTicks: {
		name:     realTicks,
		ensemble: ofThree(2*time.Second, 5),
		flags: []string{
			"--keepalive-time=1s", "--keepalive-timeout=1s", "--drain-timeout=3s", "--max-leases=5000",
		},
		timeouts: []time.Duration{4 * time.Second, 15 * time.Second},
		steady:   15 * time.Second,
		warmUp:   4 * time.Second, faults: 30 * time.Second, calm: 3 * time.Second,
		rate: 20, forced: 4, lifetime: 6,
	},
}

func ofThree(tick time.Duration, syncLimit int) ensemble.Options {
	return ensemble.Options{
		TickTime: tick, SyncLimit: syncLimit, MaxSessionTimeout: 30 * time.Second, ContainerCheck: 500 * time.Millisecond,
		MaxClientConnections: -1,
	}
}

// realEvery is how many rounds there are for each one with the real profile, if there are both.
const realEvery = 5

// chosen is the profiles to play with, one after the other, and how many rounds each.
func chosen(name string, rounds int) ([]profile, []int, error) {
	if name == bothTicks {
		long := rounds / realEvery
		return []profile{profiles[fastTicks], profiles[realTicks]}, []int{rounds - long, long}, nil
	}
	p, known := profiles[name]
	if !known {
		return nil, nil, fmt.Errorf("profile %q: there are %s, %s and %s", name, fastTicks, realTicks, bothTicks)
	}
	return []profile{p}, []int{rounds}, nil
}

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/nemesis"
)

// An alone is a round of one workload that takes longer than others: for how long nemeses strike, and for how long callers go on afterwards.
type alone struct {
	workload     string
	faults, calm time.Duration
}

// alones are all there are, by name. In the calm each item of a set gets a holder again: the plan settles, and the clients' pauses end. The
// claims of clients that were killed run out.
var alones = map[string]alone{
	"shares": {caller.Sharing, time.Minute, 40 * time.Second},
	"claims": {caller.Claiming, 2 * time.Minute, 80 * time.Second},
}

// aloneDisturbed are the nemeses of such a round, as disturbing are those of a round of ticks.
var aloneDisturbed = [][]string{{"N2", "N3", "N12"}, {"N7", "N10", "N11", "N18", "N22"}, {"N8", "N10c"}}

// drawAlone is the plan of such a round.
func (s *settings) drawAlone(seed uint64, p profile) (plan, error) {
	of, known := alones[s.alone]
	if !known {
		return plan{}, fmt.Errorf("%q alone: there are %v", s.alone, slices.Sorted(maps.Keys(alones)))
	}
	p.faults, p.calm = of.faults, of.calm
	dice := rand.New(rand.NewPCG(seed, uint64(len(p.name))))
	drawn := plan{seed: seed, profile: p, workloads: []string{of.workload}, timeout: p.timeouts[0], resuming: dice.IntN(2) == 0}
	drawn, err := s.drawFromEach(dice, drawn, aloneDisturbed)
	drawn.resuming = drawn.resuming || slices.ContainsFunc(drawn.nemeses, func(n nemesis.Nemesis) bool { return n.Resuming })
	if err == nil && s.curator != "" {
		drawn.callers, err = s.besideCurator()
	}
	return drawn, err
}

// besideCurator are the programs of clients by rank: one of each host's uses Curator's own locks, without a sidecar. Java compiles it when it
// starts.
func (s *settings) besideCurator() ([][]string, error) {
	if jars, err := filepath.Glob(filepath.Join(s.curator, "curator-recipes-*.jar")); err != nil || len(jars) == 0 {
		return nil, fmt.Errorf("-curator: there is no curator-recipes in %s (%w)", s.curator, cmp.Or(err, os.ErrNotExist))
	}
	self, err := os.Executable()
	own := []string{self, caller.Argument}
	java := []string{
		"java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(s.curator, "*"), "test/chaos/callers/Curator.java",
	}
	return [][]string{own, own, own, java}, err
}

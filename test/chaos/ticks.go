package main

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/nemesis"
)

// disturbing are the nemeses of a round of ticks, unless others are named: one of each group, all of which is of one realm.
var disturbing = [][]string{{"N2", "N3", "N12"}, {"N7", "N10", "N11"}, {"N8", "N10c"}}

// ticksAhead is by how much the clock of one sidecar is ahead, and that of another late. It is less than they tolerate.
const ticksAhead = time.Hour

// serversAhead is by how much the clocks of servers are ahead: the ensemble's clock is that of its leader.
var serversAhead = []time.Duration{0, 30 * time.Second, -30 * time.Second}

// drawTicks is the plan of a round that lasts until about so many ticks of a crontab were due.
func (s *settings) drawTicks(seed uint64, p profile) (plan, error) {
	p.faults = time.Duration((s.ticks-1)/caller.CrontabLines+1) * time.Minute
	dice := rand.New(rand.NewPCG(seed, uint64(len(p.name))))
	drawn := plan{seed: seed, profile: p, workloads: []string{caller.Crontab}, timeout: p.timeouts[0], resuming: dice.IntN(2) == 0}
	return s.drawFromEach(dice, drawn, disturbing)
}

// drawFromEach has one nemesis of each group in a plan, or those that are named.
func (s *settings) drawFromEach(dice *rand.Rand, drawn plan, groups [][]string) (plan, error) {
	var names []string
	for _, group := range groups {
		names = append(names, group[dice.IntN(len(group))])
	}
	for _, each := range nemesis.All {
		if each.Adjust != nil { // the stage is this round's
			continue
		}
		if s.nemesis == "" && slices.Contains(names, each.Name) || s.nemesis != "" && s.nemeses.MatchString(each.Name) {
			drawn.nemeses = append(drawn.nemeses, each)
		}
	}
	if len(drawn.nemeses) == 0 {
		return plan{}, errors.New("no nemesis matches")
	}
	return drawn, nil
}

package main

import (
	"math/rand/v2"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
)

// sharingDisturbed are the nemeses of a round of a large set, as disturbing are those of a round of ticks.
var sharingDisturbed = [][]string{{"N2", "N3", "N12"}, {"N7", "N10", "N11", "N22"}, {"N5", "N8", "N10c"}}

// Times of a round of a large set. In the calm each item gets a holder again: the plan settles, and the clients' pauses end.
const (
	sharingTime = time.Minute
	sharingCalm = 40 * time.Second
)

// drawShares is the plan of a round of a large set.
func (s *settings) drawShares(seed uint64, p profile) (plan, error) {
	p.faults, p.calm = sharingTime, sharingCalm
	dice := rand.New(rand.NewPCG(seed, uint64(len(p.name))))
	drawn := plan{
		seed: seed, profile: p, workloads: []string{caller.Sharing}, timeout: p.timeouts[0], resuming: dice.IntN(2) == 0,
	}
	return s.drawFromEach(dice, drawn, sharingDisturbed)
}

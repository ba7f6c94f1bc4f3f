package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/nemesis"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
)

// A plan is what follows from a seed.
type plan struct {
	seed      uint64
	profile   profile
	nemeses   []nemesis.Nemesis
	workloads []string
	timeout   time.Duration
	resuming  bool       // what stands on a lease outlives its sidecar's process
	callers   [][]string // commands of client processes, by rank; nil for the usual ones
}

// always are the workloads by which locks change hands; and some of the others join them.
var always = []string{"W1", "W3", "W9"}

const some = 2

// draw makes the plan of a round. Rounds with seeds that follow each other begin with nemeses that follow each other.
func (s *settings) draw(seed uint64, p profile) (plan, error) {
	if s.restarts > 0 {
		return s.drawRestarts(seed, p)
	}
	if s.ticks > 0 {
		return s.drawTicks(seed, p)
	}
	if s.alone != "" {
		return s.drawAlone(seed, p)
	}
	dice := rand.New(rand.NewPCG(seed, uint64(len(p.name))))
	drawn := plan{seed: seed, profile: p, workloads: s.drawWorkloads(dice)}
	var candidates []nemesis.Nemesis
	for _, each := range nemesis.All {
		if s.nemeses.MatchString(each.Name) {
			candidates = append(candidates, each)
		}
	}
	if len(candidates) == 0 || len(drawn.workloads) == 0 {
		return plan{}, errors.New("no nemesis or no workload matches")
	}
	drawn.nemeses = drawNemeses(dice, candidates, int(seed%uint64(len(candidates))))
	drawn.timeout = p.timeouts[int(seed/uint64(len(candidates)))%len(p.timeouts)]
	if drawn.steady() || drawn.long() {
		drawn.timeout = p.steady
	}
	drawn.resuming = dice.IntN(4) > 0 || slices.ContainsFunc(drawn.nemeses, func(n nemesis.Nemesis) bool { return n.Resuming })
	return drawn, nil
}

// drawNemeses takes the one given, in a quarter of the rounds another one, and in a few one of each realm.
func drawNemeses(dice *rand.Rand, candidates []nemesis.Nemesis, first int) []nemesis.Nemesis {
	count := 1
	switch lot := dice.IntN(20); {
	case lot == 0:
		count = 3
	case lot <= 5:
		count = 2
	}
	drawn := []nemesis.Nemesis{candidates[first]}
	for _, i := range dice.Perm(len(candidates)) {
		other := candidates[i]
		free := !slices.ContainsFunc(drawn, func(n nemesis.Nemesis) bool {
			return n.Realm == other.Realm || n.Adjust != nil || other.Adjust != nil
		})
		if free && len(drawn) < count {
			drawn = append(drawn, other)
		}
	}
	return drawn
}

func (s *settings) drawWorkloads(dice *rand.Rand) []string {
	var drawn, others []string
	for _, name := range slices.Sorted(maps.Keys(caller.Workloads)) {
		w := caller.Workloads[name]
		if !s.workloads.MatchString(name) || s.client == caller.ZKLock && !w.Plain || w.Apart {
			continue
		}
		if slices.Contains(always, name) {
			drawn = append(drawn, name)
		} else {
			others = append(others, name)
		}
	}
	for _, i := range dice.Perm(len(others))[:min(some, len(others))] {
		drawn = append(drawn, others[i])
	}
	slices.Sort(drawn)
	return drawn
}

// steady says whether no lease may be lost.
func (p plan) steady() bool {
	return !slices.ContainsFunc(p.nemeses, func(n nemesis.Nemesis) bool { return !n.Steady })
}

// long says whether leases must be as long as they are by default.
func (p plan) long() bool {
	return slices.ContainsFunc(p.nemeses, func(n nemesis.Nemesis) bool { return n.Long })
}

// restarts says whether servers are started anew.
func (p plan) restarts() bool {
	return slices.ContainsFunc(p.nemeses, func(n nemesis.Nemesis) bool { return n.Restarts })
}

// forces says whether locks must have changed hands that nobody released: whoever holds for long must be there.
func (p plan) forces() bool {
	return slices.Contains(p.workloads, "W3") && !p.steady() &&
		slices.ContainsFunc(p.nemeses, func(n nemesis.Nemesis) bool { return n.Forces && !n.Stops })
}

// stops says whether the naive store must have been damaged.
func (p plan) stops() bool {
	return slices.Contains(p.workloads, "W1") &&
		slices.ContainsFunc(p.nemeses, func(n nemesis.Nemesis) bool { return n.Stops })
}

// faults is how long nemeses strike.
func (p plan) faults() time.Duration {
	if slices.ContainsFunc(p.nemeses, func(n nemesis.Nemesis) bool { return n.Slow }) {
		return 2 * p.profile.faults
	}
	return p.profile.faults
}

func (p plan) names() []string {
	var names []string
	for _, each := range p.nemeses {
		names = append(names, each.Name)
	}
	return names
}

func (p plan) String() string {
	kept := map[bool]string{true: "kept", false: "not kept"}[p.resuming]
	return fmt.Sprintf("seed %d, %s, session timeout %v, state %s, %s against %s", p.seed, p.profile.name, p.timeout, kept,
		strings.Join(p.names(), "+"), strings.Join(p.workloads, "+"))
}

// stage is what the round needs of a stage, and a name for it: empty for the usual.
func (s *settings) stage(p plan) (stage.Options, string) {
	options := stage.Options{
		Sidecar: s.sidecar, Sleeper: s.sleeper, Ensemble: p.profile.ensemble, Flags: slices.Clone(p.profile.flags),
	}
	if s.ticks > 0 {
		options.Sidecar, options.Ahead, options.Ensemble.Clocks = options.Sleeper, ticksAhead, serversAhead
		return options, caller.Crontab
	}
	for _, each := range p.nemeses {
		if each.Adjust != nil {
			each.Adjust(&options)
			return options, each.Name
		}
	}
	return options, ""
}

// replay is the command that plays the round again.
func (s *settings) replay(p plan) string {
	command := []string{fmt.Sprintf("go run ./test/chaos -rounds 1 -profile %s -seed %d", p.profile.name, p.seed)}
	for _, flag := range [][2]string{{"nemesis", s.nemesis}, {"workload", s.workload}} {
		if flag[1] != "" {
			command = append(command, fmt.Sprintf("-%s '%s'", flag[0], flag[1]))
		}
	}
	if s.ticks > 0 {
		command = append(command, fmt.Sprintf("-ticks %d", s.ticks))
	}
	if s.alone != "" {
		command = append(command, "-alone "+s.alone)
	}
	if s.curator != "" {
		command = append(command, fmt.Sprintf("-curator '%s'", s.curator))
	}
	if s.restarts > 0 {
		command = append(command, fmt.Sprintf("-restarts %d -languages %s", s.restarts, s.languages))
	}
	if s.client != caller.Sidekeeper {
		command = append(command, "-client "+s.client)
	}
	return strings.Join(command, " ")
}

package main

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/judge"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
)

// The roots below which sidecars keep things.
const (
	lockRoot     = "/sidekeeper/locks"
	groupRoot    = "/sidekeeper/groups"
	sequenceRoot = "/sidekeeper/sequences"
	configRoot   = "/sidekeeper/config"
	queueRoot    = "/sidekeeper/queues"
	barrierRoot  = "/sidekeeper/barriers"
	scheduleRoot = "/sidekeeper/schedules"
)

// glance is how often it is looked whether nothing is left.
const glance = 200 * time.Millisecond

// awaitQuiet returns once nothing is left of the callers, or what is left when the time is over: sessions of sidecars and
// clients that were killed have to run out.
func (r *round) awaitQuiet(ctx context.Context) *judge.Residue {
	ctx, cancel := context.WithTimeout(ctx, r.plan.timeout+4*r.plan.profile.ensemble.TickTime+quietTime)
	defer cancel()
	for {
		left, err := r.look(context.WithoutCancel(ctx))
		if err == nil && len(left.Nodes) == 0 && left.Sessions <= left.Expected && settled(left.Processes) {
			return left
		}
		if !stage.Pause(ctx, glance) {
			if err != nil {
				r.invalidatef("what is left cannot be seen: %v", err)
			}
			return left
		}
	}
}

// quietTime is how long what is over may take to be gone, beside what has to run out: a session may be kept idle for 5 s.
const quietTime = 12 * time.Second

// settled says whether processes use no more than before, or little more.
func settled(processes []judge.Process) bool {
	return !slices.ContainsFunc(processes, func(p judge.Process) bool {
		return p.GoroutinesAfter > p.GoroutinesBefore || p.DescriptorsAfter > p.DescriptorsBefore
	})
}

// look says what is left.
func (r *round) look(ctx context.Context) (*judge.Residue, error) {
	left := &judge.Residue{Expected: stage.Hosts}
	var err error
	if left.Sessions, err = r.attached(ctx); err != nil {
		return left, err
	}
	if left.Nodes, err = r.leftovers(ctx); err != nil {
		return left, err
	}
	now, err := use(ctx, r.stage)
	for i, process := range r.before {
		if i < len(now) && now[i].Started == process.Started {
			left.Processes = append(left.Processes, judge.Process{
				Name:             r.stage.Hosts[i].Target(),
				GoroutinesBefore: process.Goroutines, GoroutinesAfter: now[i].Goroutines,
				DescriptorsBefore: process.Descriptors, DescriptorsAfter: now[i].Descriptors,
			})
		}
	}
	return left, err
}

// use is what the sidecars use, by host.
func use(ctx context.Context, s *stage.Stage) ([]stage.Use, error) {
	var all []stage.Use
	for _, host := range s.Hosts {
		one, err := host.Use(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// sessionOf is how servers name the session of a connection.
var sessionOf = regexp.MustCompile(`\bsid=(0x[0-9a-f]+)`)

// attached is how many sessions have a connection. Those that have none are about to expire: the reader of a sidecar takes a
// new one whenever its connection breaks, as it does on a busy machine.
func (r *round) attached(ctx context.Context) (int, error) {
	found := map[string]bool{}
	for _, server := range r.stage.Ensemble.Servers() {
		text, err := ask(ctx, server, "cons")
		if err != nil {
			return 0, err
		}
		for _, groups := range sessionOf.FindAllStringSubmatch(text, -1) {
			found[groups[1]] = true
		}
	}
	return len(found), nil
}

// leftovers are the nodes of contenders, members, deliveries and entries of this round that a server still has. They live with sessions, and
// servers tell all that do.
func (r *round) leftovers(ctx context.Context) ([]string, error) {
	found := map[string]bool{}
	for _, server := range r.stage.Ensemble.Servers() {
		text, err := ask(ctx, server, "dump")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			path := strings.TrimSpace(line)
			for _, root := range []string{lockRoot, groupRoot, queueRoot, barrierRoot} {
				if strings.HasPrefix(path, root+"/"+r.prefix()+"%2F") {
					found[path] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/judge"
	"github.com/sidekeeper/sidekeeper/test/chaos/nemesis"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
)

// A round is one play of a plan.
type round struct {
	plan    plan
	stage   *stage.Stage
	folder  string
	replay  string
	careful bool // clients use sidecars, and say what they have not released
	keep    bool // what the servers have logged is kept in any case

	conductor *history.Writer
	stores    *history.Writer
	since     int64 // the ensemble's newest transaction before
	began     time.Time
	patience  time.Duration // of the judge, and of nemeses
	invalid   string        // why it does not count
	broken    bool          // the stage cannot be used again
	before    []stage.Use   // what sidecars used before there were clients
	residue   *judge.Residue
	flaws     []judge.Violation // seen by the conductor itself
}

// The numbers of those that write histories and are no clients.
const (
	conductorNumber = 0
	storesNumber    = 99_999
)

// Times that nothing may take longer than.
const (
	repairTime = 2 * time.Minute
	setUpTime  = time.Minute
)

// play plays the round and has it judged. An error says that it could not be played at all.
func (r *round) play(ctx context.Context) (*result, error) {
	r.began, r.patience = time.Now(), r.plan.timeout+patience()
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	defer r.stage.Clear()
	if err := r.begin(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if err := r.disturb(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.finish(ctx)
	if err := r.close(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	judged, err := r.judge(ctx)
	if err == nil && (r.keep || !judged.clean()) {
		err = r.keepServers(ctx)
	}
	return judged, err
}

// open begins the histories.
func (r *round) open(ctx context.Context) (err error) {
	zxids, err := figures(ctx, r.stage, zxidLine)
	if err != nil {
		return err
	}
	r.since = slices.Max(zxids)
	if r.conductor, err = history.Create(r.folder, conductorNumber); err != nil {
		return err
	}
	r.stores, err = history.Create(r.folder, storesNumber)
	return err
}

func (r *round) close() error { return errors.Join(r.conductor.Close(), r.stores.Close()) }

// begin starts sidecars and clients, and lets them be for a while.
func (r *round) begin(ctx context.Context) error {
	starting, cancel := context.WithTimeout(ctx, setUpTime)
	defer cancel()
	settings := r.settings()
	r.conductor.Append(history.Event{Kind: history.Began, Nemesis: strings.Join(r.plan.names(), "+"), Settings: &settings})
	err := r.stage.Begin(starting, stage.Play{
		Folder: r.folder, History: r.conductor, Stores: r.stores, Prefix: r.prefix(), Timeout: r.plan.timeout,
		Seed: r.plan.seed, Workloads: r.plan.workloads, Resuming: r.plan.resuming,
		Callers: r.plan.callers,
	})
	if err == nil {
		err = r.makeSequences(starting)
	}
	if err == nil {
		r.before, err = use(starting, r.stage)
	}
	if err == nil {
		err = r.noteFired(starting)
	}
	if err == nil {
		err = r.stage.Populate()
	}
	if err == nil && !stage.Pause(ctx, r.plan.profile.warmUp) {
		err = context.Cause(ctx)
	}
	return err
}

// settings are what the judge knows of the round.
func (r *round) settings() history.Settings {
	return history.Settings{
		Seed: r.plan.seed, Profile: r.plan.profile.name, SessionTimeout: r.plan.timeout, Workload: strings.Join(r.plan.workloads, "+"),
		LockRoot: lockRoot, SequenceRoot: sequenceRoot, GroupRoot: groupRoot, ConfigRoot: configRoot,
		QueueRoot: queueRoot, BarrierRoot: barrierRoot, ScheduleRoot: scheduleRoot,
		Patience: r.patience, Spares: r.plan.steady(), Damages: r.plan.stops(),
	}
}

// patience is how long something may take that nothing stands in the way of, beside what has to run out: 5 seconds, and more by the factor by
// which the machine has more to do than our rounds have it do, 4 programs that run for each processor.
func patience() time.Duration {
	var load float64 // of the last minute; 0 where no kernel tells
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &load)
	}
	if err != nil {
		load = 0
	}
	return time.Duration(max(1, load/float64(4*runtime.NumCPU())) * float64(5*time.Second))
}

// prefix is what the names of the round begin with, in this ensemble's life.
func (r *round) prefix() string { return strings.ReplaceAll(filepath.Base(r.folder), "/", "-") }

// makeSequences makes those that callers take numbers from.
func (r *round) makeSequences(ctx context.Context) error {
	client, err := sidekeeper.Dial(r.stage.Hosts[0].Address())
	if err != nil {
		return err
	}
	defer client.Close()
	for _, name := range []string{caller.StrictSequence, caller.RelaxedSequence} {
		if _, err := client.Sequence(r.prefix()+"/"+name).Create(ctx, 1); err != nil {
			return fmt.Errorf("sequence %s: %w", name, err)
		}
	}
	return nil
}

// disturb lets all nemeses strike, and then repairs what is left of it.
func (r *round) disturb(ctx context.Context) error {
	p := r.plan
	group, striking := errgroup.WithContext(ctx)
	for i, each := range p.nemeses {
		dice := rand.New(rand.NewPCG(p.seed, uint64(100+i)))
		group.Go(func() error {
			err := each.Haunt(striking, nemesis.Setting{
				Stage: r.stage, Prefix: r.prefix(), Timeout: p.timeout, Tick: p.profile.ensemble.TickTime,
				Silence:  time.Duration(p.profile.ensemble.SyncLimit) * p.profile.ensemble.TickTime,
				Patience: r.patience,
			}, dice, p.faults())
			if err != nil {
				return fmt.Errorf("%s: %w", each.Name, err)
			}
			return nil
		})
	}
	struck := group.Wait()
	repairing, cancel := context.WithTimeout(ctx, repairTime)
	defer cancel()
	if err := errors.Join(struck, r.stage.Repair(repairing)); err != nil {
		r.invalidatef("it could not be repaired: %v", err)
		r.broken = true
	}
	return nil
}

// finish lets callers go on for a while in peace, shows that everything works, and waits until nothing is left of them.
func (r *round) finish(ctx context.Context) {
	stage.Pause(ctx, r.plan.profile.calm)
	r.entomb(ctx)
	if err := r.stage.Dismiss(r.dismissal()); err != nil {
		r.flawf(hygiene, "%v", err)
	}
	if r.careful {
		r.residue = r.awaitQuiet(ctx)
	}
	if err := r.noteFired(ctx); err != nil {
		r.invalidatef("the servers cannot be asked: %v", err)
	}
	r.conductor.Append(history.Event{Kind: history.Quiet})
	r.readLogs()
}

// noteFired notes how many watches servers have told of a node's deletion. A server that is started anew counts anew.
func (r *round) noteFired(ctx context.Context) error {
	if r.plan.restarts() {
		return nil
	}
	fired, err := figures(ctx, r.stage, firedLine)
	if err != nil {
		return err
	}
	event := history.Event{Kind: history.Fired}
	for _, each := range fired {
		event.Count += each
	}
	r.conductor.Append(event)
	return nil
}

// dismissal is how long clients may take to stop: what they hold may have to run out.
func (r *round) dismissal() time.Duration { return r.plan.timeout + 15*time.Second }

// invalidatef says why the round does not count; the first reason stays.
func (r *round) invalidatef(format string, arguments ...any) {
	if r.invalid == "" {
		r.invalid = fmt.Sprintf(format, arguments...)
	}
}

// flawf notes that a promise was broken.
func (r *round) flawf(checker judge.Checker, format string, arguments ...any) {
	r.flaws = append(r.flaws, judge.Violation{Checker: checker, Text: fmt.Sprintf(format, arguments...)})
}

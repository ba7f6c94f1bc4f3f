package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/judge"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// hygiene is the conductor's own checker: processes that fail, and what their logs must not hold.
const hygiene judge.Checker = "C11 hygiene"

// begins are the kinds of events that begin an operation.
var begins = []history.Kind{
	history.Called, history.Acting, history.Asked, history.Invoked, history.Joining, history.Watching, history.Putting, history.Taking,
	history.Setting, history.Removing, history.Awaiting, history.Entering, history.Requesting, history.Working,
	history.Numbering,
}

// judge has everything looked at that was seen in the round.
func (r *round) judge(ctx context.Context) (*result, error) {
	events, err := history.ReadDirectory(r.folder)
	if err != nil {
		return nil, err
	}
	log, err := txnlog.Read(r.since, r.dataDirectories()...)
	if err != nil {
		return nil, err
	}
	ahead, err := r.leadersAhead(log)
	if err != nil {
		return nil, err
	}
	verdict := judge.Judge(judge.Round{Events: events, Log: log, Residue: r.residue, Ahead: ahead})
	verdict.Violations = slices.Concat(verdict.Violations, r.crosscheck(ctx, verdict), r.flaws)
	count, rate := operations(events)
	r.requireLoad(rate, verdict)
	if r.invalid == "" {
		r.invalid = verdict.Invalid
	}
	return r.result(verdict, count, rate), nil
}

// leads is how a server's log says that it leads, and from which zxid on.
var leads = regexp.MustCompile(`Have quorum of supporters,.*setting last processed zxid: 0x([0-9a-f]+)00000000`)

// leadersAhead is how far the clock of each leader was ahead, by its epoch. A round in which it is not known of one proves nothing.
func (r *round) leadersAhead(log *txnlog.Log) (map[int64]time.Duration, error) {
	ahead := map[int64]time.Duration{}
	for _, server := range r.stage.Ensemble.Servers() {
		text, err := os.ReadFile(server.Log())
		if err != nil {
			return nil, err
		}
		for _, groups := range leads.FindAllSubmatch(text, -1) {
			epoch, err := strconv.ParseInt(string(groups[1]), 16, 64)
			if err != nil {
				return nil, err
			}
			ahead[epoch] = server.Ahead()
		}
	}
	for _, transaction := range log.Transactions {
		if _, known := ahead[transaction.Zxid>>32]; !known && slices.ContainsFunc(r.stage.Ensemble.Servers(), hasWrongClock) {
			r.invalidatef("no server's log says that it led at zxid %#x", transaction.Zxid)
		}
	}
	return ahead, nil
}

func hasWrongClock(server *ensemble.Server) bool { return server.Ahead() != 0 }

func (r *round) dataDirectories() []string {
	var directories []string
	for _, server := range r.stage.Ensemble.Servers() {
		directories = append(directories, filepath.Dir(server.Log()))
	}
	return directories
}

// operations is how many operations there were, and how many a second before the first fault, from when all callers were
// there: the first second is theirs to start in.
func operations(events []history.Event) (count int, rate float64) {
	var first, fault history.Instant
	before := 0
	for i := range events {
		event := &events[i]
		if event.Kind == history.Fault && fault == 0 {
			fault = event.At
		}
		if !slices.Contains(begins, event.Kind) {
			continue
		}
		count++
		if first == 0 {
			first = event.At.Add(time.Second)
		}
		if event.At >= first && fault == 0 {
			before++
		}
	}
	if fault > first && first != 0 {
		rate = float64(before) / fault.Since(first).Seconds()
	}
	return count, rate
}

// requireLoad demands that enough was going on for the round to show something.
func (r *round) requireLoad(rate float64, verdict judge.Verdict) {
	p := r.plan
	if rate < p.profile.rate && len(p.workloads) >= len(always)+some {
		r.invalidatef("%.0f operations a second before the first fault, where %.0f are needed", rate, p.profile.rate)
	}
	if r.careful && p.forces() && verdict.ForcedHandovers < p.profile.forced {
		r.invalidatef("%d hand-overs were forced, where %d are needed", verdict.ForcedHandovers, p.profile.forced)
	}
}

// alarming is what no log of ours may hold.
var alarming = regexp.MustCompile(`DATA RACE|(?m)^panic:|^fatal error:|"level":"(?:dpanic|panic|fatal)"`)

// readLogs looks for what must not be in the logs of sidecars and clients.
func (r *round) readLogs() {
	logs, err := filepath.Glob(filepath.Join(r.folder, "*.log"))
	if err != nil {
		r.invalidatef("%v", err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			r.invalidatef("%v", err)
		}
		if at := alarming.FindIndex(text); at != nil {
			r.flawf(hygiene, "%s: %s", filepath.Base(path), text[at[0]:min(len(text), at[0]+300)])
		}
	}
}

// failed is the result of a round that could not be played to its end.
func (r *round) failed(err error) *result {
	r.invalidatef("it could not be played: %v", err)
	return r.result(judge.Verdict{Violations: r.flaws}, 0, 0)
}

func (r *round) result(v judge.Verdict, count int, rate float64) *result {
	return &result{
		Seed: r.plan.seed, Profile: r.plan.profile.name, Timeout: r.plan.timeout.String(),
		Nemeses: r.plan.names(), Workloads: r.plan.workloads, Replay: r.replay, Folder: r.folder,
		Began: r.began.UTC().Truncate(time.Second), Seconds: time.Since(r.began).Seconds(),
		Operations: count, Rate: rate, Strikes: r.stage.Strikes(),
		Grants: v.Grants, Epochs: v.Epochs, Forced: v.ForcedHandovers, Margins: v.Margins,
		Losses: v.Losses, Needless: v.NeedlessLosses, Steady: r.plan.steady(),
		Numbers: v.Numbers, Configuration: v.Configuration, Views: v.Views,
		Invalid: r.invalid, Unchecked: v.Unchecked, Violations: v.Violations, LostByNaive: r.stage.Stores.Lost(),
		Guarded: v.Guarded, TooLate: v.TooLate, Delayed: v.Delayed, Deliveries: v.Deliveries, Items: v.Items,
		Shared: v.Shared, Idle: v.Idle, Borne: v.Borne, Rested: v.Rested,
		Passed: v.Passed, Entries: v.Entries, Ticks: v.Ticks, Runs: v.Runs, Repeated: v.Repeated, Missed: v.Missed,
		Restarts: v.Restarts, Outlived: v.Outlived, LostThen: v.Lost, Pauses: v.Pauses,
	}
}

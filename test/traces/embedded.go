package traces

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

const (
	// condemned is a session that is ended by hand: its sidecar is told that it has expired, and has the ensemble end it when its callers know.
	// For those who were told of it over other connections, that is too early.
	condemned trace.Kind = "session condemned"
	// vanished is the end of an ensemble that has not ended its sessions: what stands then goes with it.
	vanished trace.Kind = "ensemble gone"
	// elsewhere tells of a session, as it is opened, that more is written on it than heartbeats and what has to do with its places.
	elsewhere trace.Kind = "elsewhere"
)

// A commit is one transaction of an embedded ensemble, as a sidecar that is built with the tag `traced` writes it down.
type commit struct {
	At                       time.Duration // of the epoch
	Zxid, Session            int64
	Timeout                  time.Duration
	Condemned, Ended, Closed bool
	Set                      []string
	Made, Gone               []struct {
		Path  string
		Owner int64
	}
}

// elsewhere says whether it has changed anything but nodes below a root.
func (c commit) elsewhere(root string) bool {
	for _, node := range slices.Concat(c.Made, c.Gone) {
		if !strings.HasPrefix(node.Path, root) {
			return true
		}
	}
	return len(c.Set) > 0
}

// finishes says whether it has recorded the outcome of an attempt at work that is done once. With that, the sidecar gives up the attempt's place
// for its caller, over a session of its own.
func (c commit) finishes(root string) bool {
	records := path.Join(root, "../once") + "/"
	return slices.ContainsFunc(c.Set, func(set string) bool { return strings.HasPrefix(set, records) })
}

// Embedded reads one record of each sidecar that was run with an embedded ensemble, `sidekeeper dev`, and wrote its steps and the ensemble's
// transactions into this folder. Both have the same clock, and no two of them were done in one instant.
func Embedded(folder, root string) (records [][]Line, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "sidecar-*.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		steps, err := readFile[Line](name)
		if err != nil {
			return nil, err
		}
		commits, err := readFile[commit](strings.NewReplacer("sidecar-", "ensemble-", ".jsonl", ".log").Replace(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(steps) > 0 {
			m := newMerger([][]Line{steps}, root)
			records = append(records, m.merge(m.committed(commits), 0))
		}
	}
	return records, nil
}

// committed are what an embedded ensemble has done with its sidecar's sessions, and below the root.
func (m *merger) committed(commits []commit) (all []Line) {
	end, lost := Line{Kind: vanished}, m.lost()
	for _, c := range commits {
		if c.Closed && len(lost) == 0 {
			return all
		}
		if c.Ended {
			delete(lost, c.Session)
		}
		m.elsewhere[c.Session] = m.elsewhere[c.Session] || c.elsewhere(m.root)
		for _, line := range m.linesOf(c) {
			line.At, line.Session = c.At, cmp.Or(line.Session, c.Session)
			all = m.onSession(all, line)
		}
		end.At = c.At
	}
	return append(all, end)
}

// linesOf are what one transaction has done.
func (m *merger) linesOf(c commit) (all []Line) {
	switch {
	case c.Timeout > 0:
		return []Line{{Kind: born, Timeout: c.Timeout}}
	case c.Condemned:
		return []Line{{Kind: condemned}}
	case c.Ended: // with all that it owned
		return []Line{{Kind: ended}}
	}
	for _, made := range c.Made {
		if (made.Owner == c.Session || isClaim(made.Path)) && strings.HasPrefix(made.Path, m.root) {
			m.owners[made.Path] = c.Session
			all = append(all, Line{Kind: created, Place: made.Path, Token: c.Zxid})
		}
	}
	for _, gone := range c.Gone {
		owner := m.owners[gone.Path]
		switch {
		case owner != 0 && c.finishes(m.root):
			leaves := Line{Kind: trace.Leaving, Place: gone.Path, Owner: owner, Session: owner}
			all = append(all, leaves, Line{Kind: removed, Place: gone.Path, Owner: owner, Session: owner})
		case owner != 0:
			all = append(all, Line{Kind: removed, Place: gone.Path, Owner: owner})
		}
	}
	return all
}

// lost are the sessions of which the sidecar has said that they are over: they are the ensemble's to end.
func (m *merger) lost() map[int64]bool {
	sessions := map[int64]bool{}
	for _, line := range m.code {
		if line.Kind == trace.Over {
			sessions[line.Session] = true
		}
	}
	return sessions
}

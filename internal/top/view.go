package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/service"
)

// A view is a state as lines of text. Words of others cannot command the terminal: see printable.
type view struct {
	state  *service.State
	width  int  // 0 for any
	colors bool // for terminals
	skip   int  // how many rows are left out at the top of tables that are too long
	last   int  // the largest skip that changes anything, since lines
	page   int  // the largest number of rows of a table that is too long, since lines

	arrangement arrangement     // of what is in the state
	circle      map[string]bool // leases that wait in one, by number
}

func newView(state *service.State, width int) *view {
	return &view{state: state, width: width, colors: width > 0, circle: inCircle(state.Locks)}
}

// A level is how much a line matters.
type level int

const (
	levelNone level = iota
	levelHead
	levelQuiet
	levelWarn
	levelBad
)

var paints = map[level]string{levelHead: "\x1b[1m", levelQuiet: "\x1b[2m", levelWarn: "\x1b[33m", levelBad: "\x1b[31m"}

func paint(as level, line string) string {
	if paints[as] == "" {
		return line
	}
	return paints[as] + line + "\x1b[0m"
}

// A row is one line of a table.
type row struct {
	level level
	cells []string
}

// A table has at most so many rows shown, if there is not room for all.
type table struct {
	header  string // names of columns, with spaces between them
	rows    []row
	nothing string
	share   int // of the height, in percent
	all     int // how many there are, if not all of them are in rows
}

// lines are the view in at most height lines; 0 for as many as it takes.
func (v *view) lines(height int) []string {
	lines := v.head()
	for _, table := range []table{v.leases(), v.locks(), v.members(), v.losses(), v.latency()} {
		most := len(table.rows)
		if height > 0 {
			most = min(most, max(1, (height-len(v.head())-8)*table.share/100))
		}
		if hidden := len(table.rows) - most; hidden > 0 {
			v.last, v.page = max(v.last, hidden), max(v.page, most)
		}
		lines = append(lines, "")
		lines = append(lines, v.tabulate(table, most)...)
	}
	if height > 0 {
		lines = lines[:min(len(lines), height)]
	}
	return lines
}

func (v *view) head() []string {
	s, contact, as := v.state, "ensemble answers", levelHead
	switch {
	case s.Draining:
		contact, as = "stopping", levelWarn
	case !s.Reachable:
		contact, as = "NO CONTACT WITH THE ENSEMBLE", levelBad
	}
	c := s.Counts
	lines := []string{
		v.line(as, fmt.Sprintf("Sidekeeper %s, up for %s, %s", show.Printable(s.Version), seconds(s.Uptime), contact)),
		v.line(levelNone, fmt.Sprintf("leases %d of %d   suspended %d   locks held %d   waiting %d   members %d   connections %d",
			c.Leases, c.MaxLeases, c.Suspended, c.Holds, c.Waiters, c.Members, c.Connections)),
	}
	if words := v.arrangement.words(); words != "" {
		lines = append(lines, v.line(levelWarn, words))
	}
	return lines
}

func (v *view) leases() table {
	t := table{header: "LEASE OWNER CALLER STATE VALID LEFT HAS WAITS AGE", nothing: "no open leases", share: 40, all: v.state.Counts.Leases}
	for _, lease := range v.state.Leases {
		state, as := "connected", levelNone
		part := lease.ValidFor / max(lease.TTL, lease.ValidFor, 0.001)
		switch {
		case lease.Sleeping: // it needs no validity
		case part < 0.2:
			as = levelBad
		case lease.Suspended || part < 0.4:
			as = levelWarn
		}
		switch {
		case lease.Suspended:
			state = "suspended"
		case lease.Sleeping:
			state = "sleeping"
		}
		t.rows = append(t.rows, row{as, []string{
			lease.LogID, show.Owner(lease.Owner), show.Printable(lease.Caller), state, bar(part),
			seconds(lease.ValidFor) + "/" + seconds(lease.TTL),
			fmt.Sprint(lease.Holds + lease.Members), fmt.Sprint(lease.Waits), seconds(lease.Age),
		}})
	}
	return t
}

// bar is a part of 1 as ten places.
func bar(part float64) string {
	full := min(10, max(0, int(part*10+0.5)))
	return strings.Repeat("█", full) + strings.Repeat("░", 10-full)
}

func (v *view) locks() table {
	t := table{header: "LOCK HELD-BY CALLER FOR TOKEN WAITING", nothing: "no locks held or waited for", share: 30}
	for _, lock := range v.state.Locks {
		holder, by, held, token := "-", "-", "-", "-"
		if len(lock.Holders) > 0 {
			first := lock.Holders[0]
			holder, by, held, token = partyWords(first), show.Printable(first.Caller), seconds(first.For), first.Token
			if others := len(lock.Holders) - 1; others > 0 {
				holder += fmt.Sprintf(" and %d more", others)
			}
		}
		waiting, as := waiterWords(lock.Waiters), levelNone
		if v.isInCircle(lock.Holders) && v.isInCircle(lock.Waiters) {
			waiting, as = "CIRCLE, "+waiting, levelBad
		}
		t.rows = append(t.rows, row{as, []string{show.Printable(lock.Name), holder, by, held, token, waiting}})
	}
	return t
}

func partyWords(one service.Party) string {
	return fmt.Sprintf("%s (%s)", show.Owner(one.Owner), one.LogID)
}

func waiterWords(waiters []service.Party) string {
	if len(waiters) == 0 {
		return "-"
	}
	first := waiters[0]
	words := fmt.Sprintf("%d: %s for %s", len(waiters), partyWords(first), seconds(first.For))
	if len(waiters) > 1 {
		words += ", …"
	}
	return words
}

func (v *view) members() table {
	t := table{header: "MEMBER OWNER CALLER FOR", nothing: "no members", share: 10, all: v.state.Counts.Members}
	for _, member := range v.state.Members {
		since := "joining"
		if member.Joined {
			since = seconds(member.For)
		}
		t.rows = append(t.rows, row{levelNone, []string{
			show.Printable(member.Name), partyWords(member.Party), show.Printable(member.Caller), since,
		}})
	}
	return t
}

func (v *view) losses() table {
	t := table{header: "LOST REASON COUNT", nothing: "no losses since the start", share: 10}
	for _, of := range []struct {
		name   string
		counts map[string]int
	}{{"leases", v.state.Losses.Leases}, {"locks", v.state.Losses.Locks}, {"members", v.state.Losses.Members}} {
		for _, reason := range slices.Sorted(maps.Keys(of.counts)) {
			t.rows = append(t.rows, row{levelNone, []string{of.name, show.Printable(reason), fmt.Sprint(of.counts[reason])}})
		}
	}
	if v.state.Late > 0 {
		t.rows = append(t.rows, row{levelNone, []string{"heartbeats", "late", fmt.Sprint(v.state.Late)}})
	}
	return t
}

func (v *view) latency() table {
	t := table{header: "ENSEMBLE RATE/S P50 P99", nothing: "no requests to the ensemble", share: 25}
	for _, one := range v.state.Latency {
		t.rows = append(t.rows, row{levelNone, []string{
			show.Printable(one.Operation), fmt.Sprintf("%.1f", one.Rate), seconds(one.P50), seconds(one.P99),
		}})
	}
	return t
}

// table aligns columns by their widest cell, of at most 32 places but for the last.
func (v *view) tabulate(t table, most int) []string {
	if len(t.rows) == 0 {
		return []string{v.line(levelHead, strings.Fields(t.header)[0]), v.line(levelQuiet, t.nothing)}
	}
	header := row{levelHead, strings.Fields(t.header)}
	above := min(v.skip, len(t.rows)-most)
	rows := append([]row{header}, t.rows[above:above+most]...)
	widths := make([]int, len(header.cells))
	for _, row := range rows {
		for i, cell := range row.cells {
			widths[i] = min(32, max(widths[i], utf8.RuneCountInString(cell)))
		}
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, v.line(row.level, aligned(row.cells, widths)))
	}
	all := max(t.all, len(t.rows))
	if v.arrangement.filter != "" {
		all = len(t.rows) // nobody knows how many of the others would be wanted
	}
	if hidden := all - most; hidden > 0 {
		words := fmt.Sprintf("and %d more", hidden)
		if above > 0 {
			words += fmt.Sprintf(", %d of them above", above)
		}
		lines = append(lines, v.line(levelQuiet, words))
	}
	return lines
}

func aligned(cells []string, widths []int) string {
	var line strings.Builder
	for i, cell := range cells {
		if i == len(cells)-1 {
			line.WriteString(cell)
			break
		}
		cell = clip(cell, widths[i])
		line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
	}
	return line.String()
}

func (v *view) line(as level, text string) string {
	text = clip(text, v.width)
	if !v.colors {
		return text
	}
	return paint(as, text)
}

// clip cuts text to so many places, if they are not 0.
func clip(text string, places int) string {
	if places == 0 || utf8.RuneCountInString(text) <= places {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(0, places-1)]) + "…"
}

// seconds shows a time as exactly as people look at it.
func seconds(count float64) string {
	d := time.Duration(count * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

package documents

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// volatile is what differs from one run to the next, by its form: ids, points in time, durations, and the numbers of the
// ensemble, which stand behind their names or below them.
var volatile = regexp.MustCompile(`\b[0-9a-f]{32}\b` +
	`|\b20\d\d-\d\d-\d\d[T ][0-9:.]+Z?` +
	`|\b(?:\d+(?:\.\d+)?(?:ms|µs|h|m|s))+\b` +
	`|"(?:(?:fencing|current)Token|token|incarnation|revision|createdRevision)":\s*"\d+\b` +
	`|\b(?:token|incarnation|hold|in term|--token|joined \S+|left \S+) \d+\b` +
	`|…`)

var (
	columns = []string{"TOKEN", "INCARNATION", "REVISION"} // headings of tables below which such numbers stand
	number  = regexp.MustCompile(`\d+$`)
	isID    = regexp.MustCompile(`^[0-9a-f]{32}$`)
	spaces  = regexp.MustCompile(`[ \t]+`)
)

// A pattern is what a document shows of an output, as an expression that matches what is printed.
type pattern struct {
	*regexp.Regexp
	groups []string // what stands in the document for each group
}

// patternOf makes a pattern of the lines that a document shows, with an end behind them.
func patternOf(lines []string, end string) pattern {
	var p pattern
	var text strings.Builder
	text.WriteString(`^`)
	var below []int // columns of numbers in the table
	for _, line := range lines {
		if strings.TrimSpace(line) == goesOn {
			text.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		fields := strings.Fields(line)
		if found := columnsOf(fields); found != nil {
			below = found
		} else if below != nil && len(fields) > slices.Max(below) {
			p.row(&text, fields, below)
			continue
		}
		p.line(&text, line)
		text.WriteString(`[ \t]*\n`)
	}
	p.Regexp = regexp.MustCompile(text.String() + end)
	return p
}

func columnsOf(fields []string) []int {
	var found []int
	for i, field := range fields {
		if slices.Contains(columns, field) {
			found = append(found, i)
		}
	}
	return found
}

// row adds a row of a table, whose columns are as wide as what stands in them.
func (p *pattern) row(text *strings.Builder, fields []string, below []int) {
	for i, field := range fields {
		if i > 0 {
			text.WriteString(`[ \t]+`)
		}
		if _, err := strconv.Atoi(field); err == nil && slices.Contains(below, i) {
			text.WriteString(`(\d+)`)
			p.groups = append(p.groups, field)
			continue
		}
		p.line(text, field)
	}
	text.WriteString(`[ \t]*\n`)
}

func (p *pattern) line(text *strings.Builder, line string) {
	rest := 0
	for _, place := range volatile.FindAllStringIndex(line, -1) {
		text.WriteString(plain(line[rest:place[0]]))
		found := line[place[0]:place[1]]
		rest = place[1]
		switch {
		case found == goesOn:
			text.WriteString(`[^\n]*?`)
		case isID.MatchString(found):
			text.WriteString(`([0-9a-f]{32})`)
			p.groups = append(p.groups, found)
		case strings.HasPrefix(found, "20") && strings.Contains(found, ":"):
			text.WriteString(`20\d\d-\d\d-\d\d[T ][0-9:.]+Z?`)
		case number.MatchString(found):
			digits := number.FindString(found)
			text.WriteString(plain(strings.TrimSuffix(found, digits)) + `(\d+)`)
			p.groups = append(p.groups, digits)
		default:
			text.WriteString(`(?:\d+(?:\.\d+)?(?:ms|µs|h|m|s))+`)
		}
	}
	text.WriteString(plain(line[rest:]))
}

// plain matches a text, whatever the widths of its gaps.
func plain(text string) string {
	return spaces.ReplaceAllString(regexp.QuoteMeta(text), `[ \t]+`)
}

// bindings are what ids and numbers of a document stand for.
type bindings struct {
	ids     map[string]string
	numbers map[int]int
}

func newBindings() *bindings { return &bindings{ids: map[string]string{}, numbers: map[int]int{}} }

// bind takes over what a pattern has matched. It fails if the same stands for different things, or if of two numbers
// another one is the larger.
func (b *bindings) bind(shown, found []string) error {
	for i, text := range shown {
		if isID.MatchString(text) {
			if known := b.ids[text]; known != "" && known != found[i] {
				return fmt.Errorf("%s stood for %s before, and stands for %s here", text, known, found[i])
			}
			b.ids[text] = found[i]
			continue
		}
		left, _ := strconv.Atoi(text) // of digits alone
		right, _ := strconv.Atoi(found[i])
		for other, meant := range b.numbers {
			if cmp.Compare(left, other) != cmp.Compare(right, meant) {
				return fmt.Errorf("%d and %d stand for %d and %d, in another order", other, left, meant, right)
			}
		}
		b.numbers[left] = right
	}
	return nil
}

// meant is a command with the ids and numbers of this run in place of those that the document shows.
func (b *bindings) meant(command string) string {
	for _, id := range slices.Sorted(maps.Keys(b.ids)) {
		command = strings.ReplaceAll(command, id, b.ids[id])
	}
	return volatile.ReplaceAllStringFunc(command, func(found string) string {
		digits := number.FindString(found)
		shown, _ := strconv.Atoi(digits)
		if meant, known := b.numbers[shown]; known && !isID.MatchString(found) && digits != "" {
			return strings.TrimSuffix(found, digits) + strconv.Itoa(meant)
		}
		return found
	})
}

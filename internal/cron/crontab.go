package cron

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Job is a line of a crontab with its command.
type Job struct {
	Number      int // of the line
	Name        string
	Line, Zone  string
	CatchUp     bool
	SkipLost    bool
	StartWithin time.Duration // 0 for the usual one
	Shell       string
	Command     string
	Input       string   // what the command reads, after the first % of the line
	Environment []string // of variables that the file sets
}

const (
	// LeastStartWithin is the shortest that a tick may be late: an ensemble under load takes some time to begin it.
	LeastStartWithin = time.Second
	// LongestStartWithin is the longest.
	LongestStartWithin = 366 * 24 * time.Hour
)

var (
	variable = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$`)
	options  = regexp.MustCompile(`^#\s*sidekeeper:`)
	unfit    = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
)

// Defaults are what a crontab need not say.
type Defaults struct {
	Prefix string // of the names of schedules, without the slash behind it
	Zone   string
	Broken func(name string) (rule string) // which rule the name of a schedule breaks, if any; may be nil
}

// A reader is how far a crontab is read.
type reader struct {
	Defaults

	number      int
	environment []string
	shell       string
	next        Job // what the comment above a line says of it
	said        int // the number of that comment; 0 for none
	jobs        []Job
	names       map[string]int // numbers of their lines
}

// Read reads a crontab in the form of a user's: five fields, or a word such as @daily, and the command. CRON_TZ sets the zone of the lines that
// follow. A comment of the form `# sidekeeper: name=… misfire=skip|once start-within=… on-loss=retry|skip` is about the line below it. A line
// without a name gets one that is made of its command. The error names the line that it is about.
func Read(text string, defaults Defaults) ([]Job, error) {
	r := &reader{Defaults: defaults, shell: "/bin/sh", names: map[string]int{}}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		r.number++
		if err := r.read(strings.TrimSpace(lines.Text())); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", r.number+1, err)
	}
	if r.said > 0 {
		return nil, fmt.Errorf("line %d: no line follows that it is about", r.said)
	}
	return r.jobs, nil
}

func (r *reader) read(line string) error {
	if said := options.FindString(line); said != "" {
		if r.said > 0 {
			return fmt.Errorf("another comment about the same line stands in line %d: write one", r.said)
		}
		r.said = r.number
		return r.readOptions(line[len(said):])
	}
	if line == "" || line[0] == '#' {
		return nil
	}
	if set := variable.FindStringSubmatch(line); set != nil {
		r.set(set[1], strings.Trim(set[2], `"'`))
		return nil
	}
	job, fields := r.next, 5
	r.next, r.said = Job{}, 0
	if line[0] == '@' {
		fields = 1
	}
	job.Line, job.Command = split(line, fields)
	if job.Command == "" {
		return fmt.Errorf("%w and a command", ErrLine)
	}
	job.Number, job.Zone, job.Shell, job.Environment = r.number, r.Zone, r.shell, slices.Clip(r.environment)
	job.Command, job.Input = input(job.Command)
	if job.Name == "" {
		job.Name = r.nameOf(job.Command)
	}
	if _, err := Parse(job.Line, job.Zone); err != nil {
		return err
	}
	if err := r.checkName(job.Name); err != nil {
		return err
	}
	if other := r.names[job.Name]; other > 0 {
		return fmt.Errorf("its schedule is called %s as that of line %d: write `# sidekeeper: name=…` above one of them", job.Name, other)
	}
	r.names[job.Name] = job.Number
	r.jobs = append(r.jobs, job)
	return nil
}

func (r *reader) checkName(name string) error {
	if r.Broken == nil {
		return nil
	}
	if rule := r.Broken(name); rule != "" {
		return fmt.Errorf("its schedule is called %q: %s", name, rule)
	}
	return nil
}

func (r *reader) set(name, value string) {
	switch name {
	case "CRON_TZ":
		r.Zone = value
	case "SHELL":
		r.shell = value
		fallthrough
	default:
		r.environment = append(slices.Clip(r.environment), name+"="+value)
	}
}

// split cuts off the first fields of a line.
func split(line string, fields int) (first, rest string) {
	rest = line
	for range fields {
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			return line, ""
		}
		rest = strings.TrimLeft(rest[end:], " \t")
	}
	return strings.TrimSpace(line[:len(line)-len(rest)]), rest
}

// input cuts off what a command reads: all behind the first %, where each other % ends a line. A \% is a %.
func input(command string) (before, after string) {
	const escaped = "\x00"
	command = strings.ReplaceAll(command, `\%`, escaped)
	before, after, _ = strings.Cut(command, "%")
	return strings.ReplaceAll(before, escaped, "%"), strings.ReplaceAll(strings.ReplaceAll(after, "%", "\n"), escaped, "%")
}

// nameOf names a schedule by its command: people see the program's name, and a hash tells it from others.
func (r *reader) nameOf(command string) string {
	const longest = 40
	program := strings.Trim(unfit.ReplaceAllString(path.Base(strings.Fields(command + " job")[0]), "-"), "-")
	return fmt.Sprintf("%s/%.*s-%.4x", r.Prefix, longest, program, sha256.Sum256([]byte(command)))
}

func (r *reader) readOptions(said string) error {
	r.next = Job{}
	for word := range strings.FieldsSeq(said) {
		key, value, _ := strings.Cut(word, "=")
		switch key + "=" + value {
		case "misfire=skip", "on-loss=retry":
			continue
		case "misfire=once":
			r.next.CatchUp = true
			continue
		case "on-loss=skip":
			r.next.SkipLost = true
			continue
		}
		switch key {
		case "name":
			r.next.Name = value
		case "start-within":
			within, err := time.ParseDuration(value)
			if err != nil || within < LeastStartWithin || within > LongestStartWithin {
				return fmt.Errorf("%q: start-within takes a duration such as 10m, from %v to %v", word, LeastStartWithin, LongestStartWithin)
			}
			r.next.StartWithin = within
		default:
			return fmt.Errorf("%q: name=…, misfire=skip|once, start-within=… or on-loss=retry|skip", word)
		}
	}
	return nil
}

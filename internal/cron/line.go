// Package cron says when the line of a crontab fires in a time zone, and reads crontabs. It reads no clock.
//
// A line whose hour is `*` goes by real time: it fires in each minute that the zone's clocks show and the line has. In an hour that comes twice
// it fires in both. Any other line goes by the calendar: it fires once for each of its times. Of a time that comes twice it fires at the first.
// For a time that is skipped it fires right after the gap, once for all that are skipped with it.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"

	parser "github.com/robfig/cron/v3"
)

// Errors of Parse and Zone. What they wrap says more.
var (
	// ErrLine means that a line is none that the parser knows.
	ErrLine = errors.New("not the five fields of a crontab")
	// ErrNever means that a line never fires.
	ErrNever = errors.New("it never fires")
	// ErrZone means that there is no such time zone on this machine.
	ErrZone = errors.New("no such time zone")
)

const (
	// longestLine bounds the text of a line, in bytes.
	longestLine = 256
	// longestSearch is more days than lie between two leap days.
	longestSearch = 9 * 366
	// star is the parser's bit of a field that is `*`.
	star = 1 << 63
)

// A Line is the five fields of a line, in a time zone. It is never zero.
type Line struct {
	fields *parser.SpecSchedule
	zone   *time.Location
	both   bool // a day has to fit both the day of the month and that of the week; otherwise one of them is enough
}

var fields = parser.NewParser(parser.Minute | parser.Hour | parser.Dom | parser.Month | parser.Dow | parser.Descriptor)

// Parse reads a line: five fields as in crontab(5), or @hourly, @daily, @weekly, @monthly or @yearly. ErrLine, ErrNever, ErrZone.
func Parse(text, zone string) (Line, error) {
	in, err := Zone(zone)
	if err != nil {
		return Line{}, err
	}
	text = strings.TrimSpace(text)
	if len(text) > longestLine || strings.Contains(text, "=") { // the parser would take a zone from it
		return Line{}, fmt.Errorf("%w: at most %d bytes, without =", ErrLine, longestLine)
	}
	words := strings.Fields(text)
	if len(words) == 5 {
		words[4] = sunday(words[4])
	}
	parsed, err := fields.Parse(strings.Join(words, " "))
	if err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	of, is := parsed.(*parser.SpecSchedule)
	if !is {
		return Line{}, fmt.Errorf("%w: @every has no fixed times: use a field such as */5", ErrLine)
	}
	line := Line{fields: of, zone: in, both: len(words) < 5 || isStar(words[2]) || isStar(words[4])}
	if line.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Line{}, ErrNever
	}
	return line, nil
}

// Zone is a time zone by its name, such as Europe/Berlin. ErrZone.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" || len(name) > longestLine {
		return nil, fmt.Errorf("%w: %.64q: a name such as UTC or Europe/Berlin", ErrZone, name)
	}
	in, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %.64q", ErrZone, name)
	}
	return in, nil
}

// sunday writes 0 for a 7 in the day of the week, as crontab(5) has it: the parser does not know that.
func sunday(field string) string {
	days := strings.Split(field, ",")
	for i, day := range days {
		if day == "7" {
			days[i] = "0"
		} else if first, is := strings.CutSuffix(day, "-7"); is {
			days[i] = first + "-6,0"
		}
	}
	return strings.Join(days, ",")
}

// isStar says whether a field of days allows all of them, as cron counts it: `*/2` does, too.
func isStar(field string) bool { return strings.HasPrefix(field, "*") || strings.HasPrefix(field, "?") }

// Next is the first time after another one at which the line fires, in UTC. It is zero if that is more than nine years ahead.
func (l Line) Next(after time.Time) time.Time {
	if l.fields.Hour&star != 0 {
		return l.nextMinute(after)
	}
	return l.nextTime(after)
}

func has(field uint64, value int) bool { return field&(1<<value) != 0 }

// fits says whether the line fires on a day.
func (l Line) fits(day time.Time) bool {
	ofMonth, ofWeek := has(l.fields.Dom, day.Day()), has(l.fields.Dow, int(day.Weekday()))
	if !has(l.fields.Month, int(day.Month())) {
		return false
	}
	return ofMonth && ofWeek || !l.both && (ofMonth || ofWeek)
}

// nextTime goes through the days and times that the calendar has, written as if they were UTC's.
func (l Line) nextTime(after time.Time) time.Time {
	year, month, today := after.In(l.zone).Date()
	for day := range longestSearch {
		midnight := time.Date(year, month, today+day-1, 0, 0, 0, 0, time.UTC)
		if !l.fits(midnight) {
			continue
		}
		for hour := range 24 {
			at := midnight.Add(time.Duration(hour) * time.Hour)
			if !has(l.fields.Hour, hour) || !l.first(at.Add(59*time.Minute)).After(after) {
				continue
			}
			for minute := range 60 {
				fires := l.first(at.Add(time.Duration(minute) * time.Minute))
				if has(l.fields.Minute, minute) && fires.After(after) {
					return fires
				}
			}
		}
	}
	return time.Time{}
}

// first is when the zone's clocks first show a time, which is written as if it were UTC's; if they never do, when they have just skipped it.
func (l Line) first(shown time.Time) time.Time {
	const most = 15 * time.Hour // more than any zone is ahead of UTC
	for at := shown.Add(-most).In(l.zone); ; {
		_, offset := at.Zone()
		begins, ends := at.ZoneBounds()
		fires := shown.Add(-time.Duration(offset) * time.Second)
		switch {
		case !begins.IsZero() && fires.Before(begins):
			return begins.UTC()
		case ends.IsZero(), fires.Before(ends):
			return fires
		}
		at = ends
	}
}

// nextMinute goes through the minutes as they pass.
func (l Line) nextMinute(after time.Time) time.Time {
	at := after.Truncate(time.Minute).Add(time.Minute).In(l.zone)
	for most := after.AddDate(0, 0, longestSearch); at.Before(most); {
		switch {
		case !l.fits(at):
			at = l.laterDay(at)
		case has(l.fields.Minute, at.Minute()):
			return at.UTC()
		default:
			at = at.Add(time.Minute)
		}
	}
	return time.Time{}
}

// laterDay is the next midnight, or when the zone's clocks are next set, whichever is first.
func (l Line) laterDay(at time.Time) time.Time {
	year, month, day := at.Date()
	later := l.first(time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)).In(l.zone)
	if _, ends := at.ZoneBounds(); !ends.IsZero() && ends.Before(later) {
		later = ends
	}
	if !later.After(at) { // past a midnight that comes twice
		later = at.Add(time.Minute)
	}
	return later
}

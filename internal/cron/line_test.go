package cron_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/cron"
)

// The table is made by hand, from the zones' rules. Times are UTC.
var table = []struct {
	zone, line, after, fires string
}{
	// Clocks go from 02:00 to 03:00 at 01:00 UTC on 29 March 2026, and from 03:00 to 02:00 at 01:00 UTC on 25 October 2026.
	{"Europe/Berlin", "30 2 * * *", "2026-03-28 12:00", "03-29 01:00, 03-30 00:30"},
	{"Europe/Berlin", "*/15 2 * * *", "2026-03-28 12:00", "03-29 01:00, 03-30 00:00"},
	{"Europe/Berlin", "0 3 * * *", "2026-03-28 12:00", "03-29 01:00, 03-30 01:00"},
	{"Europe/Berlin", "0 2,3 * * *", "2026-03-28 12:00", "03-29 01:00, 03-30 00:00"},
	{"Europe/Berlin", "30 1,4 * * *", "2026-03-28 12:00", "03-29 00:30, 03-29 02:30"},
	{"Europe/Berlin", "30 * * * *", "2026-03-29 00:00", "03-29 00:30, 03-29 01:30"},
	{"Europe/Berlin", "* * * * *", "2026-03-29 00:59", "03-29 01:00, 03-29 01:01"},
	{"Europe/Berlin", "30 2 * * *", "2026-10-24 12:00", "10-25 00:30, 10-26 01:30"},
	{"Europe/Berlin", "30 2 * * *", "2026-10-25 01:10", "10-26 01:30, 10-27 01:30"},
	{"Europe/Berlin", "0 2 * * *", "2026-10-24 12:00", "10-25 00:00, 10-26 01:00"},
	{"Europe/Berlin", "0 3 * * *", "2026-10-24 12:00", "10-25 02:00, 10-26 02:00"},
	{"Europe/Berlin", "0 */2 * * *", "2026-10-24 21:00", "10-24 22:00, 10-25 00:00, 10-25 03:00"},
	{"Europe/Berlin", "30 * * * *", "2026-10-25 00:00", "10-25 00:30, 10-25 01:30, 10-25 02:30"},
	{"Europe/Berlin", "* * * * *", "2026-10-25 00:58", "10-25 00:59, 10-25 01:00, 10-25 01:01"},
	{"Europe/Berlin", "@daily", "2026-10-24 12:00", "10-24 22:00, 10-25 23:00"},

	// Clocks went from 00:00 to 01:00 at 03:00 UTC on 4 November 2018, and from 00:00 back to 23:00 at 02:00 UTC on 18 February 2018.
	{"America/Sao_Paulo", "0 0 * * *", "2018-11-03 12:00", "11-04 03:00, 11-05 02:00"},
	{"America/Sao_Paulo", "30 0 * * 0", "2018-11-03 12:00", "11-04 03:00, 11-11 02:30"},
	{"America/Sao_Paulo", "30 0,1 * * *", "2018-11-03 12:00", "11-04 03:00, 11-04 03:30, 11-05 02:30"},
	{"America/Sao_Paulo", "0 * * * *", "2018-11-04 01:30", "11-04 02:00, 11-04 03:00"},
	{"America/Sao_Paulo", "30 23 * * *", "2018-02-17 12:00", "02-18 01:30, 02-19 02:30"},
	{"America/Sao_Paulo", "0 0 * * *", "2018-02-17 12:00", "02-18 03:00, 02-19 03:00"},
	{"America/Sao_Paulo", "30 * * * *", "2018-02-18 01:00", "02-18 01:30, 02-18 02:30, 02-18 03:30"},
	{"America/Sao_Paulo", "59 * * * 6", "2018-02-18 01:00", "02-18 01:59, 02-18 02:59, 02-24 03:59"},

	// Clocks go from 02:00 to 01:30 at 15:00 UTC on 4 April 2026, and from 02:00 to 02:30 at 15:30 UTC on 3 October 2026.
	{"Australia/Lord_Howe", "45 1 * * *", "2026-04-04 00:00", "04-04 14:45, 04-05 15:15"},
	{"Australia/Lord_Howe", "15 1 * * *", "2026-04-04 00:00", "04-04 14:15, 04-05 14:45"},
	{"Australia/Lord_Howe", "0 2 * * *", "2026-04-04 00:00", "04-04 15:30, 04-05 15:30"},
	{"Australia/Lord_Howe", "45 * * * *", "2026-04-04 14:00", "04-04 14:45, 04-04 15:15, 04-04 16:15"},
	{"Australia/Lord_Howe", "15 * * * *", "2026-04-04 14:00", "04-04 14:15, 04-04 15:45"},
	{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03 00:00", "10-03 15:30, 10-04 15:15"},
	{"Australia/Lord_Howe", "15,45 2 * * *", "2026-10-03 00:00", "10-03 15:30, 10-03 15:45, 10-04 15:15"},
	{"Australia/Lord_Howe", "15 * * * *", "2026-10-03 14:50", "10-03 16:15, 10-03 17:15"},

	{"UTC", "30 2 * * *", "2026-03-28 12:00", "03-29 02:30, 03-30 02:30"},
	{"UTC", "0 * * * *", "2026-10-25 00:00", "10-25 01:00, 10-25 02:00"},
	{"UTC", "0 0 29 2 *", "2026-01-01 00:00", "02-29 00:00, 02-29 00:00"},
	{"UTC", "0 * 29 2 *", "2097-01-01 00:00", "02-29 00:00, 02-29 01:00"},
	{"UTC", "0 0 1 * 1", "2026-11-28 00:00", "11-30 00:00, 12-01 00:00, 12-07 00:00"},
	{"UTC", "0 0 */2 * 1", "2026-11-28 00:00", "12-07 00:00, 12-21 00:00"},
	{"UTC", "0 0 * * 7", "2026-11-28 00:00", "11-29 00:00, 12-06 00:00"},
	{"UTC", "0 0 * * 6-7", "2026-11-27 00:00", "11-28 00:00, 11-29 00:00, 12-05 00:00"},
	{"UTC", "0 0 * * Mon,7", "2026-11-28 00:00", "11-29 00:00, 11-30 00:00, 12-06 00:00"},
	{"UTC", "0 12 31 * ?", "2026-11-28 00:00", "12-31 12:00, 01-31 12:00, 03-31 12:00"},

	// A day that was skipped: 30 December 2011. Clocks went from 00:00 on the 30th to 00:00 on the 31st at 10:00 UTC.
	{"Pacific/Apia", "0 6 * * *", "2011-12-29 00:00", "12-29 16:00, 12-30 10:00, 12-30 16:00"},
	// Clocks went back from 00:01 to 23:01, at 02:31 UTC on 7 November 2010.
	{"America/St_Johns", "30 * * * 6", "2010-11-07 01:30", "11-07 02:00, 11-07 03:00, 11-13 04:00"},
	{"America/St_Johns", "0 0 * * *", "2010-11-06 12:00", "11-07 02:30, 11-08 03:30"},
}

func TestALineFiresAsTheTableSays(t *testing.T) {
	t.Parallel()
	for _, c := range table {
		line, err := cron.Parse(c.line, c.zone)
		if err != nil {
			t.Errorf("%s in %s: %v", c.line, c.zone, err)
			continue
		}
		at, err := time.Parse("2006-01-02 15:04", c.after)
		if err != nil {
			t.Fatal(err)
		}
		var fires []string
		for range strings.Count(c.fires, ",") + 1 {
			at = line.Next(at)
			fires = append(fires, at.Format("01-02 15:04"))
		}
		if got := strings.Join(fires, ", "); got != c.fires {
			t.Errorf("%s in %s after %s: fires at %s, want %s", c.line, c.zone, c.after, got, c.fires)
		}
	}
}

func TestALineFiresAtTimesThatGrow(t *testing.T) {
	t.Parallel()
	for _, c := range table {
		line, err := cron.Parse(c.line, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse("2006-01-02 15:04", c.after)
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			next := line.Next(at)
			between := line.Next(at.Add(next.Sub(at) / 2))
			if !next.After(at) || !between.Equal(next) || next.Location() != time.UTC {
				t.Fatalf("%s in %s: %v follows %v, and %v what is between them", c.line, c.zone, next, at, between)
			}
			at = next
		}
	}
}

func TestALineThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, zone string
		want       error
	}{
		{"0 0 31 2 *", "UTC", cron.ErrNever},
		{"0 * 31 4,6,9,11 *", "UTC", cron.ErrNever},
		{", 0 * * *", "UTC", cron.ErrNever},
		{"", "UTC", cron.ErrLine},
		{"* * * *", "UTC", cron.ErrLine},
		{"60 * * * *", "UTC", cron.ErrLine},
		{"* * * * 8", "UTC", cron.ErrLine},
		{"*/0 * * * *", "UTC", cron.ErrLine},
		{"0 0 0 * * *", "UTC", cron.ErrLine},
		{"@reboot", "UTC", cron.ErrLine},
		{"@every 5m", "UTC", cron.ErrLine},
		{"TZ=UTC", "UTC", cron.ErrLine},
		{"CRON_TZ=UTC 0 0 * * *", "UTC", cron.ErrLine},
		{strings.Repeat("1,", 200) + "1 * * * *", "UTC", cron.ErrLine},
		{"0 0 * * *", "Europe/Atlantis", cron.ErrZone},
		{"0 0 * * *", "", cron.ErrZone},
		{"0 0 * * *", "Local", cron.ErrZone},
		{"0 0 * * *", "../../etc/passwd", cron.ErrZone},
	} {
		if _, err := cron.Parse(c.line, c.zone); !errors.Is(err, c.want) {
			t.Errorf("%q in %q: %v, want %v", c.line, c.zone, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range table {
		f.Add(c.line, c.zone)
	}
	f.Fuzz(func(t *testing.T, text, zone string) {
		line, err := cron.Parse(text, zone)
		if err != nil {
			return
		}
		at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
		if next := line.Next(at); !next.After(at) {
			t.Errorf("%q in %q: %v follows %v", text, zone, next, at)
		}
	})
}

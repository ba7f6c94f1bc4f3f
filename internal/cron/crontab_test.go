package cron_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/cron"
)

const crontab = `
# A comment.
MAILTO = ops@example.com
0 3 * * *   /usr/local/bin/make-reports --all  --fast
SHELL=/bin/bash
CRON_TZ=Europe/Berlin
# sidekeeper: name=backup/db misfire=once start-within=1h on-loss=skip
30 2 * * 7	pg_dump shop > /backup/$(date +\%F)
@hourly cat%one%two\%
`

// defaults have a rule of names as the service has, in short.
var defaults = cron.Defaults{Prefix: "cron", Zone: "UTC", Broken: func(name string) string {
	if strings.Contains(name, "//") || strings.HasPrefix(name, "/") {
		return "no segment is empty"
	}
	return ""
}}

func jobs(t *testing.T, text string) []cron.Job {
	t.Helper()
	all, err := cron.Read(text, defaults)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestACrontabIsReadAsCronReadsIt(t *testing.T) {
	t.Parallel()
	var got []string
	for _, job := range jobs(t, crontab) {
		got = append(got, fmt.Sprintf("%d %s [%s %s] %v %v %v %s [%s] %q %v", job.Number, job.Name, job.Line, job.Zone, job.CatchUp, job.SkipLost,
			job.StartWithin, job.Shell, job.Command, job.Input, job.Environment))
	}
	const mail = "MAILTO=ops@example.com"
	want := []string{
		`4 cron/make-reports-50f5376f [0 3 * * * UTC] false false 0s /bin/sh [/usr/local/bin/make-reports --all  --fast] "" [` + mail + `]`,
		`8 backup/db [30 2 * * 7 Europe/Berlin] true true 1h0m0s /bin/bash [pg_dump shop > /backup/$(date +%F)] "" [` + mail + ` SHELL=/bin/bash]`,
		`9 cron/cat-77af778b [@hourly Europe/Berlin] false false 0s /bin/bash [cat] "one\ntwo%" [` + mail + ` SHELL=/bin/bash]`,
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("job %d: %v, want %v", i, got[i:], want[i:])
			break
		}
	}
}

func TestANameStaysWithItsCommand(t *testing.T) {
	t.Parallel()
	one, other := jobs(t, "0 3 * * * a b")[0], jobs(t, "\n\n5 4 * * 1 a b\n")[0]
	if one.Name != other.Name {
		t.Errorf("%s and %s", one.Name, other.Name)
	}
}

func TestACrontabWithABadLineIsRefusedWithItsNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\n0 0 31 2 * x":                    "line 2: it never fires",
		"CRON_TZ=Europe/Atlantis\n@daily x": "line 2: no such time zone",
		"0 0 * * *":                         "line 1: not the five fields of a crontab and a command",
		"@daily":                            "line 1: not the five fields of a crontab and a command",
		"@reboot x":                         "line 1: not the five fields",
		"@daily x\n\n0 0 * * * x":           "line 3: its schedule is called cron/x-2d711642 as that of line 1",
		"# sidekeeper: name=a\n@daily x\n# sidekeeper: name=a\n@daily y": "line 4: its schedule is called a as that of line 2",
		"# sidekeeper: misfire=twice\n@daily x":                          `line 1: "misfire=twice": name=`,
		"# sidekeeper: start-within=-1m\n@daily x":                       `line 1: "start-within=-1m": start-within takes`,
		"# sidekeeper: name=a//b\n@daily x":                              `line 2: its schedule is called "a//b": no segment is empty`,
		"# sidekeeper: start-within=1ns\n@daily x":                       `line 1: "start-within=1ns": start-within takes a duration such as 10m`,
		"# sidekeeper: start-within=9000h\n@daily x":                     `line 1: "start-within=9000h": start-within takes`,
		"#sidekeeper: misfire=twice\n@daily x":                           `line 1: "misfire=twice": name=`,
		"# sidekeeper: name=a\n#  sidekeeper: misfire=once\n@daily x":    "line 2: another comment about the same line stands in line 1",
		"@daily x\n# sidekeeper: name=a\n":                               "line 2: no line follows",
	} {
		_, err := cron.Read(text, defaults)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(crontab)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := cron.Read(text, defaults)
		for _, job := range all {
			if err != nil || job.Name == "" || job.Command == "" && job.Input == "" {
				t.Errorf("%q: %v %v", text, job, err)
			}
		}
	})
}

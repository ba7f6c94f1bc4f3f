package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// A clockwork is a sidecar with a crontab, whose line begins when it is asked to.
type clockwork struct {
	t       *testing.T
	sidecar *sidekeepertest.Sidecar
	file    string
}

func newClockwork(t *testing.T, crontab string) clockwork {
	t.Helper()
	c := clockwork{t, sidekeepertest.Start(t, sidekeepertest.Options{}), filepath.Join(t.TempDir(), "crontab")}
	c.write(crontab)
	return c
}

func (c clockwork) write(crontab string) {
	c.t.Helper()
	if err := os.WriteFile(c.file, []byte(crontab), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// runs has a machine run the crontab.
func (c clockwork) runs(owner string, more ...string) *program {
	c.t.Helper()
	return start(c.t, c.sidecar.Address(), append([]string{"cron", "run", c.file, "--owner", owner}, more...)...)
}

// asks has the work of schedules begin, which are there soon.
func (c clockwork) asks(names ...string) {
	c.t.Helper()
	for _, name := range names {
		wantWithin(c.t, name, func() bool { return strings.Contains(c.schedule("show", name), "waiting") })
		c.schedule("run", name)
	}
}

// comesTo waits for the last outcome of a schedule.
func (c clockwork) comesTo(name, state string) {
	c.t.Helper()
	wantWithin(c.t, state, func() bool { return strings.Contains(c.schedule("show", name), state) })
}

// schedule calls `sidekeeper schedule`.
func (c clockwork) schedule(args ...string) string {
	c.t.Helper()
	at := c.sidecar.Address()
	stdout, stderr, _ := output(c.t, append([]string{"--address", at, "--operator-address", at, "schedule"}, args...)...)
	return stdout + stderr
}

// outcomes are those of a schedule in words, the newest first, without times.
func (c clockwork) outcomes(name string) string {
	c.t.Helper()
	lines := strings.Split(strings.TrimSpace(c.schedule("history", name)), "\n")[1:]
	for i, line := range lines {
		fields := strings.Fields(line)
		for fields[0] != "succeeded" && fields[0] != "failed" && fields[0] != "lost" {
			fields = fields[1:]
		}
		lines[i] = strings.Join(append(fields[:3:3], fields[5:]...), " ")
	}
	return strings.Join(lines, ", ")
}

// wantWithin waits until something is so, of which another process sees to it.
func wantWithin(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.After(patience); !is(); {
		select {
		case <-late:
			t.Fatal("not so: " + what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *program) said(t *testing.T, words ...string) {
	t.Helper()
	for _, each := range words {
		wantWithin(t, each, func() bool { return strings.Contains(p.stderr.String(), each) })
	}
}

const yearly = "# sidekeeper: name=report\nWORD=hello\n@yearly "

func TestALineOfACrontabRunsOnOneMachine(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, yearly+`echo "$WORD $SIDEKEEPER_SCHEDULE $SIDEKEEPER_TICK_ATTEMPT ${SIDEKEEPER_TICK\%\%-*}"; cat%over`)
	one := c.runs("one")
	wantWithin(t, "the schedule", func() bool { return strings.Contains(c.schedule("show", "report"), "waiting") })
	two := c.runs("two")
	if told := c.schedule("run", "report", "--id", "first"); told != "first of report is asked for\n" {
		t.Errorf("run: %s", told)
	}
	line := receive(t, one.lines)
	if !regexp.MustCompile(`^hello report 1 20\d\d$`).MatchString(line) {
		t.Errorf("it says %q", line)
	}
	wantWithin(t, "the outcome", func() bool { return strings.Contains(c.schedule("show", "report"), "succeeded") })
	if got, want := c.outcomes("report"), "succeeded 1 one "+line+" | over"; got != want {
		t.Errorf("outcomes: %s, want %s", got, want)
	}
	for _, each := range []*program{one, two} {
		each.signal(syscall.SIGTERM)
		each.want(t, 0)
	}
}

func TestACommandOfACrontabWhoseMachineDiesRunsOnAnother(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, yearly+`echo "attempt $SIDEKEEPER_TICK_ATTEMPT"; [ "$SIDEKEEPER_TICK_ATTEMPT" = 2 ] || exec sleep 600; exit 3`)
	one := c.runs("one")
	wantWithin(t, "the schedule", func() bool { return strings.Contains(c.schedule("show", "report"), "waiting") })
	c.schedule("run", "report")
	one.wantLine(t, "attempt 1")
	two := c.runs("two")
	one.signal(syscall.SIGKILL)
	receive(t, one.code)
	two.wantLine(t, "attempt 2")
	wantWithin(t, "the outcome", func() bool { return strings.Contains(c.schedule("show", "report"), "failed") })
	if got, want := c.outcomes("report"), "failed 2 two exit code 3: attempt 2, lost 1 one -"; got != want {
		t.Errorf("outcomes: %s, want %s", got, want)
	}
	two.signal(syscall.SIGTERM)
	two.want(t, 0)
}

func TestACrontabIsReadAgainAndACommandEndsByItself(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, yearly+"echo begun; read -r line < "+filepath.Join(t.TempDir(), "none")+" || sleep 1; echo ended")
	one := c.runs("one")
	wantWithin(t, "the schedule", func() bool { return strings.Contains(c.schedule("show", "report"), "waiting") })
	c.write("@yearly x\n@hourly x\n")
	one.signal(syscall.SIGHUP)
	one.said(t, "the lines stay as they are: ", "line 2: its schedule is called ")
	c.write("# sidekeeper: name=other\n@yearly echo other\n" + yearly + "echo begun; sleep 1; echo ended")
	one.signal(syscall.SIGHUP)
	one.said(t, "2 lines of ")
	wantWithin(t, "the other", func() bool { return strings.Contains(c.schedule("ls", "other/"), "other ") })
	c.schedule("run", "report")
	one.wantLine(t, "begun")
	one.signal(syscall.SIGTERM)
	one.wantLine(t, "ended")
	one.want(t, 0)
	if got, want := c.outcomes("report"), "succeeded 1 one begun | ended"; got != want {
		t.Errorf("outcomes: %s, want %s", got, want)
	}
}

func TestSchedulesFromACommandLine(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, "@daily\n")
	c.runs("one").want(t, 64, "line 1: not the five fields of a crontab and a command")
	for _, step := range []struct{ args, want string }{
		{"show nightly", "SCHEDULE_NOT_FOUND"},
		{"pause nightly", "SCHEDULE_NOT_FOUND"},
		{"put nightly @daily --time-zone Europe/Atlantis", `time_zone is "Europe/Atlantis"`},
		{"put nightly @daily --time-zone Europe/Berlin --misfire once --start-within 1h --on-loss skip", "nightly  @daily  Europe/Berlin  20"},
		{"pause nightly", " paused "},
		{"put nightly @hourly", " paused "},
		{"show nightly --output json", `"cron":"@hourly","timeZone":"Europe/Berlin","misfire":"MISFIRE_ONCE","startWithin":"3600s",` +
			`"onLoss":"POLICY_SKIP","paused":true`},
		{"resume nightly", " waiting "},
		{"reset nightly", " waiting "},
		{"ls n", "NAME"},
		{"ls nightly", "nightly "},
		{"history nightly", "TICK"},
		{"rm nightly", "nightly is removed"},
		{"rm nightly", "SCHEDULE_NOT_FOUND"},
	} {
		if told := c.schedule(strings.Fields(step.args)...); !strings.Contains(told, step.want) {
			t.Errorf("schedule %s: %s, want %s", step.args, told, step.want)
		}
	}
}

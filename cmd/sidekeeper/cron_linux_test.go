package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// line is a line of a crontab, which is run by hand alone, and its schedule's name.
func line(name, more, command string) string {
	return "# sidekeeper: name=" + name + " " + more + "\n@yearly " + command + "\n"
}

// until is a command that waits for a file.
func until(file string) string { return "until [ -e " + file + " ]; do sleep 0.05; done" }

// numberOf is what a line says behind a word.
func numberOf(t *testing.T, p *program, word string) int {
	t.Helper()
	text := receive(t, p.lines)
	is, err := strconv.Atoi(strings.TrimPrefix(text, word+" "))
	if err != nil {
		t.Fatalf("it says %q, not %s", text, word)
	}
	return is
}

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// isThere says whether there is a process, even if nothing is left of it but its status.
func isThere(process int) bool { return syscall.Kill(process, 0) == nil }

func TestAGuardianThatIsKilledTakesNoOtherCommandOfTheCrontabAlong(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	c := newClockwork(t, line("daemon", "", "sleep 600 >/dev/null 2>&1 & echo daemon $!")+
		line("killed", "on-loss=skip", `setsid sleep 600 & echo left $!; echo guardian $PPID; wait`)+
		line("other", "", "echo other $$; "+until(gate)))
	p := c.runs("one")
	c.asks("daemon")
	daemon := numberOf(t, p, "daemon")
	c.comesTo("daemon", "succeeded")
	c.asks("other")
	numberOf(t, p, "other")
	c.asks("killed")
	left, guardian := numberOf(t, p, "left"), numberOf(t, p, "guardian")
	if err := syscall.Kill(guardian, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.comesTo("killed", "lost")
	if isThere(left) || !isThere(daemon) {
		t.Errorf("what the killed one has left is there: %v; a daemon of another is there: %v", isThere(left), isThere(daemon))
	}
	touch(t, gate)
	c.comesTo("other", "succeeded")
	if err := syscall.Kill(daemon, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantWithin(t, "no zombie", func() bool { return !isThere(daemon) })
	p.signal(syscall.SIGTERM)
	p.want(t, 0)
}

func TestACommandThatDiesWithItsMachineIsLostAndHasNotFailed(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, line("report", "", "echo command $$; exec sleep 600"))
	p := c.runs("one")
	c.asks("report")
	command := numberOf(t, p, "command")
	p.signal(syscall.SIGTERM)
	p.said(t, "ends when the commands have ended")
	if err := syscall.Kill(command, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.want(t, 0)
	two := c.runs("two")
	numberOf(t, two, "command")
	if got, want := c.outcomes("report"), "lost 1 one -"; got != want {
		t.Errorf("outcomes: %s, want %s", got, want)
	}
}

func TestTheThirdSignalKillsACommandThatIgnoresTheSecond(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, line("report", "", `trap "" TERM; echo command $$; while :; do sleep 1; done`))
	p := c.runs("one")
	c.asks("report")
	command := numberOf(t, p, "command")
	for len(p.code) == 0 {
		_ = p.process.Signal(syscall.SIGTERM)
		<-time.After(100 * time.Millisecond)
	}
	p.want(t, 0)
	if isThere(command) {
		t.Error("the command is there")
	}
}

func TestAScheduleThatWasRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, line("report", "", "echo ran"))
	p := c.runs("one")
	c.asks("report")
	p.wantLine(t, "ran")
	c.comesTo("report", "succeeded")
	if says := c.schedule("rm", "report"); !strings.Contains(says, "is removed") {
		t.Fatal(says)
	}
	p.said(t, "SCHEDULE_NOT_FOUND")
	c.asks("report")
	p.wantLine(t, "ran")
	c.schedule("put", "report", "@daily")
	p.signal(syscall.SIGHUP)
	wantWithin(t, "the line of the file", func() bool { return strings.Contains(c.schedule("show", "report"), "@yearly") })
}

func TestOutputThatStandsStillHoldsNoCommandUp(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, line("report", "", "head -c 2000000 /dev/zero | tr '\\0' '\\n'; echo end"))
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	startAs(t, func(command *exec.Cmd) { command.Stdout = writer }, c.sidecar.Address(), "cron", "run", c.file, "--owner", "one")
	writer.Close()
	c.asks("report")
	c.comesTo("report", "succeeded")
}

func TestASuccessIsToldForLongerThanACallMayTake(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	c := newClockwork(t, line("report", "on-loss=skip", "echo begun; "+until(gate)))
	p := c.runs("one", "--timeout", "200ms")
	c.asks("report")
	p.wantLine(t, "begun")
	c.sidecar.Suspend(2 * time.Second)
	touch(t, gate)
	c.comesTo("report", "succeeded")
	if got, want := c.outcomes("report"), "succeeded 1 one begun"; got != want {
		t.Errorf("outcomes: %s, want %s", got, want)
	}
}

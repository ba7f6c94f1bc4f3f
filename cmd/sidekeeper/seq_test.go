package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

var incarnations = regexp.MustCompile(`"incarnation":"[1-9][0-9]*"`)

// A sequenceRunner runs `sidekeeper seq` towards a sidecar for which everybody is an operator.
type sequenceRunner struct {
	*testing.T
	address string
}

func runSequences(t *testing.T) sequenceRunner {
	t.Helper()
	return sequenceRunner{t, sidekeepertest.Start(t, sidekeepertest.Options{SessionTimeout: 20 * time.Second}).Address()}
}

func (r sequenceRunner) output(args ...string) (seen string, code int) {
	r.Helper()
	where := []string{"--address", r.address, "--operator-address", r.address}
	stdout, stderr, code := output(r.T, append(where, args...)...)
	return stdout + stderr, code
}

func (r sequenceRunner) want(code int, want string, args ...string) {
	r.Helper()
	command := append([]string{"seq"}, args...)
	if seen, got := r.output(command...); got != code || seen != want {
		r.Errorf("%s: exit code %d, want %d\n%s\nwant\n%s", strings.Join(command, " "), got, code, seen, want)
	}
}

func TestSequencesAreUsedFromATerminal(t *testing.T) {
	t.Parallel()
	seq := runSequences(t)
	seq.want(0, "", "create", "orders", "--first", "10")
	seq.want(1, "sidekeeper: there is such a sequence already: orders (SEQUENCE_EXISTS)\n", "create", "orders")
	seq.want(0, "10\n", "next", "orders")
	seq.want(0, "11\n12\n13\n", "next", "orders", "--count", "3")
	seq.want(0, "000000000000000e\n000000000000000f\n", "next", "orders", "-n", "2", "--hex")
	seq.want(0, "15\n", "get", "orders")
	seq.want(0, "40\n", "advance", "orders", "40")
	seq.want(0, "40\n", "advance", "orders", "--", "-4")
	seq.want(0, "41\n", "next", "orders", "--relaxed")
	seq.want(0, "", "rm", "orders")
	seq.want(1, "sidekeeper: no such sequence: orders (SEQUENCE_NOT_FOUND)\n", "rm", "orders")
	seq.want(1, "sidekeeper: no such sequence: orders (SEQUENCE_NOT_FOUND)\n", "next", "orders")
}

func TestNegativeNumbersAreShownAsTheyAreStored(t *testing.T) {
	t.Parallel()
	seq := runSequences(t)
	seq.want(0, "", "create", "below", "--first=-1")
	seq.want(0, "-1\n0\n", "next", "below", "-n", "2")
	seq.want(0, "", "create", "far-below", "--first=-2")
	seq.want(0, "fffffffffffffffe\n", "next", "far-below", "--hex")
}

func TestSequencesAreListedInATable(t *testing.T) {
	t.Parallel()
	seq := runSequences(t)
	seq.want(0, "NAME  LAST  INCARNATION  NOTES\n", "ls")
	seq.want(0, "", "create", "orders/eu")
	seq.want(0, "1\n", "next", "orders/eu")
	seen, code := seq.output("seq", "ls", "orders")
	if fields := strings.Fields(seen); code != 0 || len(fields) != 7 || fields[4] != "orders/eu" || fields[5] != "1" {
		t.Errorf("%d: %s", code, seen)
	}
	seq.want(0, "NAME  LAST  INCARNATION  NOTES\n", "ls", "other")
}

func TestSequencesAnswerInJSON(t *testing.T) {
	t.Parallel()
	seq := runSequences(t)
	for _, command := range []string{"create orders", "next orders -n 4", "get orders", "advance orders 7", "ls", "rm orders"} {
		seen, code := seq.output(append([]string{"seq", "-o", "json"}, strings.Fields(command)...)...)
		want := map[string]string{
			"create orders": `{"incarnation":"*"}`, "next orders -n 4": `{"first":"1","last":"4","incarnation":"*"}`,
			"get orders": `{"lastIssued":"4","incarnation":"*"}`, "advance orders 7": `{"lastIssued":"7","incarnation":"*"}`,
			"ls":        `{"sequences":[{"name":"orders","lastIssued":"7","incarnation":"*","malformed":false}],"nextPageToken":""}`,
			"rm orders": `{}`,
		}[command]
		if code != 0 || incarnations.ReplaceAllString(seen, `"incarnation":"*"`) != want+"\n" {
			t.Errorf("%s: %d %s, want %s", command, code, seen, want)
		}
	}
}

func TestSequenceCommandsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	seq := runSequences(t)
	seq.want(64, "sidekeeper: --count is \"0\": a whole number from 1 to 1000000\n", "next", "orders", "--count", "0")
	seq.want(64, "sidekeeper: LAST is \"many\": a number of 64 bits\n", "advance", "orders", "many")
	seq.want(64, "sidekeeper: name is \"a//b\": no segment of a name is empty\n", "get", "a//b")
}

func TestNamesOfSequencesAreCompleted(t *testing.T) {
	t.Parallel()
	seq := runSequences(t)
	seq.want(0, "", "create", "orders")
	seq.want(0, "", "create", "invoices")
	for _, command := range []string{"next", "get", "advance", "rm"} {
		stdout, _, _ := output(t, "__complete", "--address", seq.address, "seq", command, "")
		if !strings.HasPrefix(stdout, "invoices\norders\n:4") {
			t.Errorf("%s: %q", command, stdout)
		}
	}
}

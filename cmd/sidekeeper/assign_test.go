package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// assigns calls `sidekeeper assign`.
func assigns(t *testing.T, sidecar *sidekeepertest.Sidecar, args ...string) (said string, code int) {
	t.Helper()
	stdout, stderr, code := output(t, append([]string{"--address", sidecar.Address(), "assign"}, args...)...)
	return stdout + stderr, code
}

// worksOn runs a command for each item, which says its item and its process and lives on after SIGTERM.
func worksOn(t *testing.T, sidecar *sidekeepertest.Sidecar, member string) *program {
	t.Helper()
	script := `trap "" TERM; echo "$SIDEKEEPER_ITEM $SIDEKEEPER_LOCK_NAME $SIDEKEEPER_SET $$"; exec sleep 600`
	return start(t, sidecar.Address(), "assign", "run", "orders", "--member", member, "--kill-grace", "50ms", "--", "sh", "-c", script)
}

// begins is the item of the next command that begins, and its process.
func begins(t *testing.T, p *program) (item string, process int) {
	t.Helper()
	line := receive(t, p.lines)
	var lock, set string
	if _, err := fmt.Sscanf(line, "%s %s %s %d", &item, &lock, &set, &process); err != nil || lock != "orders/"+item || set != "orders" {
		t.Errorf("it says %q: %v", line, err)
	}
	return item, process
}

func lives(process int) bool { return !errors.Is(syscall.Kill(process, 0), syscall.ESRCH) }

func TestItemsMoveFromAProgramThatIsKilledWhenItsCommandsAreDead(t *testing.T) {
	t.Parallel()
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	assigns(t, sidecar, "define", "orders", "--count", "2")
	one := worksOn(t, sidecar, "one")
	processes := map[string]int{}
	for range 2 {
		item, process := begins(t, one)
		processes[item] = process
	}
	two := worksOn(t, sidecar, "two")
	moved, successor := begins(t, two)
	if lives(processes[moved]) {
		t.Errorf("two commands for %s", moved)
	}
	delete(processes, moved)
	if said, code := assigns(t, sidecar, "define", "orders", "--count", "1"); code != 1 || !strings.Contains(said, `has "1" (ITEMS_ASSIGNED)`) {
		t.Errorf("fewer items: %d %s", code, said)
	}
	if said, code := assigns(t, sidecar, "rm", "orders"); code != 1 || !strings.Contains(said, "ASSIGNMENT_IN_USE") {
		t.Errorf("removed: %d %s", code, said)
	}
	one.signal(syscall.SIGKILL)
	receive(t, one.code)
	left, _ := begins(t, two)
	if process := processes[left]; process == 0 || lives(process) {
		t.Errorf("two commands for %s, or for %s", left, moved)
	}
	two.signal(syscall.SIGINT)
	two.want(t, 0)
	if lives(successor) {
		t.Error("a command has outlived its program")
	}
}

func TestACommandOfAnItemThatFailsBeginsAgain(t *testing.T) {
	t.Parallel()
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	assigns(t, sidecar, "define", "orders", "east")
	at := sidecar.Address()
	start(t, at, "assign", "run", "none", "--", "true").want(t, 1, "ASSIGNMENT_NOT_FOUND")
	start(t, at, "assign", "run", "orders", "--member", "a/b", "--", "true").want(t, 64, `member is "a/b": one segment, without /`)
	start(t, at, "assign", "run", "orders", "--", "/none").want(t, 127, "/none: no such file")
	start(t, at, "assign", "run", "orders", "--", os.TempDir()).want(t, 126)

	one := start(t, at, "assign", "run", "orders", "--member", "one", "--", "sh", "-c", "echo $SIDEKEEPER_ITEM; exit 3")
	for range 2 {
		one.wantLine(t, "east")
	}
	one.said(t, "one of orders has 1 of 1 items; members: 1, items without a member: 0", "east: exit 3")
	if said, code := assigns(t, sidecar, "drain", "orders", "one"); code != 0 {
		t.Error(code, said)
	}
	wantWithin(t, "drained", func() bool {
		said, _ := assigns(t, sidecar, "show", "orders")
		return regexp.MustCompile("without a member: east, for [0-9.ms]+\nimbalance: -\n").MatchString(said)
	})
	one.signal(syscall.SIGTERM)
	one.want(t, 0)
}

func TestSetsOfItemsFromACommandLine(t *testing.T) {
	t.Parallel()
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	many := strings.Split(strings.TrimSuffix(strings.Repeat("x,", 2001), ","), ",")
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{append([]string{"define", "orders"}, many...), 64, `sidekeeper: items is "2001 of them": at most 2000`},
		{[]string{"define", "orders", "a", "b", "a"}, 64, `sidekeeper: items[2] is "a": an item that was not named before`},
		{[]string{"define", "orders", "a/b"}, 64, "sidekeeper: items[0] is "},
		{[]string{"define", "orders", "a", "--count", "1"}, 64, "sidekeeper: either --count or ITEMs are required, and not both\n"},
		{[]string{"show", "orders"}, 1, "ASSIGNMENT_NOT_FOUND"},
		{[]string{"define", "orders", "a", "b"}, 0, "orders has 2 items\n"},
		{[]string{"define", "orders", "b", "--output", "json"}, 0, "{}\n"},
		{[]string{"ls"}, 0, "orders  1      0        1\n"},
		{[]string{"show", "orders"}, 0, "orders: 1 items, 0 members, no plan yet\nwithout a member: b\nimbalance: -\n"},
		{[]string{"show", "orders", "--holders"}, 0, "b     -       -       -      -      -\n"},
		{[]string{"show", "orders", "--output", "json"}, 0, `{"set":"orders","epoch":"0","members":[],"items":[{"item":"b","member":""}]`},
		{[]string{"show", "orders", "--holders", "--watch"}, 64, "sidekeeper: --watch shows plans, and --holders one moment: give one of the two\n"},
		{[]string{"show", "none", "--watch"}, 1, "ASSIGNMENT_NOT_FOUND"},
		{[]string{"drain", "orders", "one"}, 1, "MEMBER_NOT_FOUND"},
		{[]string{"capacity", "orders", "one", "1"}, 1, "MEMBER_NOT_FOUND"},
		{[]string{"rm", "orders"}, 0, "orders is removed\n"},
		{[]string{"rm", "orders"}, 1, "ASSIGNMENT_NOT_FOUND"},
	} {
		if said, code := assigns(t, sidecar, step.args...); code != step.code || !strings.Contains(said, step.want) {
			t.Errorf("assign %.60s: %d %s, want %d %s", strings.Join(step.args, " "), code, said, step.code, step.want)
		}
	}
}

func TestASetIsShownWheneverItChanges(t *testing.T) {
	t.Parallel()
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	assigns(t, sidecar, "define", "orders", "a")
	shown := start(t, sidecar.Address(), "assign", "show", "orders", "--watch")
	for _, line := range []string{"orders: 1 items, 0 members, no plan yet", "without a member: a", "imbalance: -"} {
		shown.wantLine(t, line)
	}
	assigns(t, sidecar, "define", "orders", "a", "b")
	for _, line := range []string{"orders: 2 items, 0 members, no plan yet", "without a member: a b", "imbalance: -"} {
		shown.wantLine(t, line)
	}
	assigns(t, sidecar, "rm", "orders")
	shown.want(t, 1, "ASSIGNMENT_NOT_FOUND")
}

func TestTheImbalanceOfASet(t *testing.T) {
	t.Parallel()
	for want, of := range map[string][][2]int32{
		"-":                                    {{2000, 5}, {2000, 6}},
		"m0 has 2.0 items more than its part":  {{2000, 6}, {2000, 2}},
		"m1 has 10.0 items more than its part": {{10, 0}, {0, 10}},
		"m0 has 1.5 items more than its part":  {{1, 4}, {3, 6}},
	} {
		if got := imbalance(membersOf(of)); got != want {
			t.Errorf("%v: %s, want %s", of, got, want)
		}
	}
}

// membersOf are members with these capacities and items.
func membersOf(all [][2]int32) (members []*assignmentv1.Member) {
	for i, of := range all {
		members = append(members, &assignmentv1.Member{Member: fmt.Sprint("m", i), Capacity: of[0], Items: of[1]})
	}
	return members
}

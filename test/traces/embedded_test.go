package traces

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// written writes a sidecar's steps and the transactions of its ensemble as the sidecar does.
func written(t *testing.T, steps []Line, commits []embedded.Change) (folder string) {
	t.Helper()
	folder = t.TempDir()
	var texts [2]strings.Builder
	encode := func(i int, line any) {
		if err := json.NewEncoder(&texts[i]).Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range steps {
		step.At = time.Duration(10 * i)
		encode(0, step)
	}
	for i, change := range commits {
		encode(1, struct {
			At int64
			embedded.Change
		}{int64(10*i + 5), change})
	}
	for i, name := range []string{"sidecar-7.jsonl", "ensemble-7.log"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(texts[i].String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func merged(t *testing.T, steps []Line, commits []embedded.Change) (lines []Line, told string) {
	t.Helper()
	records, err := Embedded(written(t, steps, commits), "/locks")
	if err != nil || len(records) != 1 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	var all []string
	for _, line := range records[0] {
		all = append(all, fmt.Sprint(line.Kind, " ", line.Session))
	}
	return records[0], strings.Join(all, ", ")
}

// A place is asked for and made.
var (
	asked = Line{Kind: trace.Asked, Session: 1, Place: "/locks/orders/_c_1-lock-"}
	made  = Line{Kind: trace.Made, Session: 1, Place: first}
)

func opened(session int64) Line { return Line{Kind: trace.Opened, Session: session} }

func owned(path string, session int64) []embedded.Owned {
	return []embedded.Owned{{Path: path, Owner: session}}
}

func TestASidecarsStepsAndItsEnsemblesTransactionsAreInOneOrder(t *testing.T) {
	_, told := merged(t,
		[]Line{
			{Kind: trace.Read},
			opened(1), asked, made,
			{Kind: trace.Leaving, Session: 1, Place: "/groups/web"},
			{Kind: trace.Leaving, Session: 1, Place: first},
			{Kind: trace.Left, Session: 1, Place: first},
		},
		[]embedded.Change{
			{Zxid: 1, Session: 1, Timeout: time.Second},
			{Zxid: 2, Session: 9, Timeout: time.Second}, // nobody's of ours
			{Zxid: 3, Session: 1, Made: owned(first, 1)},
			{Zxid: 4, Session: 1, Made: owned("/locks/orders", 0)},
			{Zxid: 5, Session: 1}, // a heartbeat
			{Zxid: 6, Session: 1, Gone: owned(first, 1)},
			{Zxid: 7, Session: 9, Made: owned(reserved, 0)}, // a claim
			{Zxid: 8, Session: 1, Gone: owned(reserved, 0)},
			{Zxid: 9, Session: 1, Ended: true},
			{Closed: true},
		})
	want := "read 0, session made 1, opened 1, asked 1, node made 1, made 1, leaving 1, node gone 1, left 1, died 1, node made 9, node gone 1, " +
		"session ended 1"
	if told != want {
		t.Errorf("%s, not\n%s", told, want)
	}
}

// What stands when an ensemble goes that has not ended its sessions is nobody's fault.
func TestATraceOfALockIsWholeUnlessItsEnsembleVanishes(t *testing.T) {
	steps := []Line{opened(1), asked}
	ends := embedded.Change{Session: 1, Ended: true}
	commits := []embedded.Change{{Zxid: 1, Session: 1, Timeout: time.Second}, {Zxid: 2, Session: 1, Made: owned(first, 1)}}
	for _, test := range []struct {
		steps   []Line
		commits []embedded.Change
		whole   bool
	}{
		{steps, commits, false},
		{steps, append(commits, embedded.Change{Closed: true}), true},
		{append(steps, Line{Kind: trace.Over, Session: 1}), append(commits, embedded.Change{Closed: true}), false},
		{append(steps, Line{Kind: trace.Over, Session: 1}), append(commits, ends, embedded.Change{Closed: true}), true},
	} {
		lines, told := merged(t, test.steps, test.commits)
		if got := Locks(lines)[0].Steps; (got[len(got)-1].Kind == "end") != test.whole {
			t.Errorf("%s: %v", told, got)
		}
	}
}

// Whoever was told of a session that is ended by hand is not waited for, and nothing that was believed of it counts.
func TestASessionThatIsEndedByHandIsNobodysPromise(t *testing.T) {
	lines, _ := merged(t,
		[]Line{
			opened(1), asked, made,
			{Kind: trace.Granted, Place: first, Token: 2},
			{Kind: trace.Carried, Session: 1, Token: 2},
			{Kind: trace.Promised, Session: 1, Until: time.Hour},
			{Kind: trace.Over, Session: 1},
			{Kind: trace.Ended, Session: 1, Token: 2},
		},
		[]embedded.Change{
			{Zxid: 1, Session: 1, Timeout: time.Second},
			{Zxid: 2, Session: 1, Made: owned(first, 1)},
			{Zxid: 3, Session: 1},
			{Zxid: 4, Session: 1},
			{Zxid: 5, Session: 1},
			{Session: 1, Condemned: true},
			{Zxid: 6, Session: 1},
			{Zxid: 7, Session: 1, Ended: true},
		})
	steps := Locks(lines)[0].Steps
	if last := steps[len(steps)-2:]; last[0].Kind != "expires" || last[1].Kind != "lost" {
		t.Errorf("%v", steps)
	}
	sessions := Sessions(lines)
	if len(sessions) != 1 || len(sessions[0].Steps) != 1 {
		t.Errorf("%+v", sessions)
	}
}

func TestATransactionIsNoHeartbeatForCertainWhereMoreIsWritten(t *testing.T) {
	for i, other := range []embedded.Change{
		{Zxid: 3, Session: 1},
		{Zxid: 3, Session: 1, Made: owned("/groups/web/a", 1)},
		{Zxid: 3, Session: 1, Set: []string{first}},
	} {
		lines, told := merged(t,
			[]Line{opened(1), asked, made, {Kind: trace.Proved, Session: 1}},
			[]embedded.Change{
				{Zxid: 1, Session: 1, Timeout: time.Second}, {Zxid: 2, Session: 1, Made: owned(first, 1)}, other, {Session: 1, Ended: true},
			})
		if steps := Sessions(lines)[0].Steps; steps[1].Heartbeat != (i == 0) {
			t.Errorf("%s: %v", told, steps)
		}
	}
}

// With the outcome of an attempt the sidecar deletes its place, over a session of its own. No other transaction may delete the place of another
// session.
func TestAPlaceThatGoesWithTheOutcomeOfItsAttemptIsGivenUpByItsCaller(t *testing.T) {
	for set, want := range map[string]string{
		"/once/mail/order-7": "made 1, died 1, died 2, leaving 1, node gone 1, ensemble gone 0",
		"/config/colour":     "made 1, died 1, died 2, node gone 2, ensemble gone 0",
	} {
		_, told := merged(t,
			[]Line{opened(2), opened(1), asked, made},
			[]embedded.Change{
				{Zxid: 1, Session: 2, Timeout: time.Second},
				{Zxid: 2, Session: 1, Timeout: time.Second},
				{Zxid: 3, Session: 1, Made: owned(first, 1)},
				{Zxid: 4, Session: 2, Gone: owned(first, 1), Set: []string{set}},
			})
		if !strings.HasSuffix(told, want) {
			t.Errorf("with %s: %s", set, told)
		}
	}
}

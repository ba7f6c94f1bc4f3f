package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A kind is a lock recipe of one client library.
type kind struct{ library, recipe string }

// titles are what the document calls the kinds.
var titles = map[string]kind{
	"Curator `InterProcessSemaphoreMutex`": {"curator", "semaphore"},
	"Sidekeeper `EXCLUSIVE`":               {"sidekeeper", "mutex"},
	"Sidekeeper `READ`":                    {"sidekeeper", "read"},
	"Sidekeeper `WRITE`":                   {"sidekeeper", "write"},
	"a claim":                              {"sidekeeper", "claim"},
	"a claim with `READ`":                  {"sidekeeper", "claim-read"},
	"a claim with `WRITE`":                 {"sidekeeper", "claim-write"},
	"Curator `InterProcessMutex`":          {"curator", "mutex"},
	"Curator `readLock()`":                 {"curator", "read"},
	"Curator `writeLock()`":                {"curator", "write"},
	"go-zookeeper `zk.Lock`":               {"go-zookeeper", "lock"},
	"kazoo `SharedLock`":                   {"kazoo", "shared"},
	"kazoo `SharedReadLock`":               {"kazoo", "read"},
	"kazoo `SharedWriteLock`":              {"kazoo", "write"},
	"kazoo `Lock` with patterns":           {"kazoo", "patterns"},
	"kazoo `Lock`":                         {"kazoo", "lock"},
	"kazoo `ReadLock`":                     {"kazoo", "stock-read"},
	"kazoo `WriteLock`":                    {"kazoo", "stock-write"},
	"ZooKeeper `WriteLock`":                {"zookeeper", "SharedWriteLock"},
}

// outcomes are what the document's words say of a latecomer while somebody else holds the lock.
var outcomes = map[string]string{"waits": "waits", "together": "held", "**overtakes**": "held", "refused": "refused"}

// A meeting is a cell of one of the document's tables: who comes while who holds the lock.
type meeting struct {
	holder, latecomer kind
	told              string // a key of outcomes
	path              string
}

// Who waits for whom is as the document says, whichever ensemble it is.
func TestALatecomerWaitsForTheHolderAsTheDocumentSays(t *testing.T) {
	meetings := documentedMeetings(t)
	on(t, func(t *testing.T, s stage) {
		peers := s.all(t)
		peers["zookeeper"] = s.contenders(t, "zookeeper")
		for i, m := range meetings {
			encounter(t, peers, i, m)
		}
		<-time.After(300 * time.Millisecond) // for whoever does not wait as it should
		for i, m := range meetings {
			t.Run(fmt.Sprintf("%s before %s", m.holder, m.latecomer), func(t *testing.T) { part(t, peers, i, m) })
		}
	})
}

// decision is how long a latecomer may take that need not wait.
const decision = 10 * time.Second

func (k kind) String() string { return k.library + " " + k.recipe }

func encounter(t *testing.T, peers map[string]*peer, i int, m meeting) {
	t.Helper()
	holder, latecomer := peers[m.holder.library], peers[m.latecomer.library]
	expect(t, holder, "made", "make", fmt.Sprint("holder-", i), m.holder.recipe, m.path)
	expect(t, latecomer, "made", "make", fmt.Sprint("latecomer-", i), m.latecomer.recipe, m.path)
	expect(t, holder, "asked", "ask", fmt.Sprint("holder-", i))
	expect(t, holder, "held", "granted", fmt.Sprint("holder-", i), patience.Milliseconds())
	expect(t, latecomer, "asked", "ask", fmt.Sprint("latecomer-", i))
}

// part sees how the latecomer fares, and ends both.
func part(t *testing.T, peers map[string]*peer, i int, m meeting) {
	t.Helper()
	holder, latecomer := peers[m.holder.library], peers[m.latecomer.library]
	wait := decision
	if m.told == "waits" {
		wait = 0
	}
	got := latecomer.tell(t, "granted", fmt.Sprint("latecomer-", i), wait.Milliseconds())
	if got != outcomes[m.told] {
		t.Errorf("%s, and the document says %s", got, m.told)
	}
	expect(t, holder, "released", "release", fmt.Sprint("holder-", i))
	if got == "waits" {
		expect(t, latecomer, "held", "granted", fmt.Sprint("latecomer-", i), patience.Milliseconds())
	}
	if got == "waits" || got == "held" {
		expect(t, latecomer, "released", "release", fmt.Sprint("latecomer-", i))
	}
}

const document = "../../docs/interoperability.md"

// documentedMeetings reads the tables that say who waits for whom.
func documentedMeetings(t *testing.T) (meetings []meeting) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(document))
	must(t, err)
	var latecomers []string
	for line := range strings.Lines(string(text)) {
		cells := cellsOf(line)
		switch {
		case len(cells) == 0:
			latecomers = nil
		case cells[0] == "holds ↓ arrives →":
			latecomers = cells[1:]
		case latecomers != nil && strings.Trim(cells[0], "-") != "":
			meetings = append(meetings, row(t, cells, latecomers, len(meetings))...)
		}
	}
	if len(meetings) < len(titles) {
		t.Fatalf("%s tells of %d meetings only", document, len(meetings))
	}
	return meetings
}

func row(t *testing.T, cells, latecomers []string, before int) (meetings []meeting) {
	t.Helper()
	for i, told := range cells[1:] {
		holder, known := titles[cells[0]]
		latecomer, knownToo := titles[latecomers[i]]
		if !known || !knownToo || outcomes[told] == "" {
			t.Fatalf("%s: who are %s and %s, and what is %q?", document, cells[0], latecomers[i], told)
		}
		if reading := holder.reads() && latecomer.reads(); told == "together" && !reading || told == "**overtakes**" && reading {
			t.Errorf("%s: %s and %s cannot be %s", document, holder, latecomer, told)
		}
		meetings = append(meetings, meeting{holder, latecomer, told, fmt.Sprint(lockRoot, "meeting-", before+i)})
	}
	return meetings
}

func (k kind) reads() bool { return strings.HasSuffix(k.recipe, "read") }

// cellsOf are those of a line of a table.
func cellsOf(line string) (cells []string) {
	inside, found := strings.CutPrefix(strings.TrimSpace(line), "|")
	if !found {
		return nil
	}
	for cell := range strings.SplitSeq(strings.TrimSuffix(inside, "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

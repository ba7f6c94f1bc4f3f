package peers

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A hold is when somebody held the lock by its own belief, on the machine's clock.
type hold struct {
	library, process  string // whose
	name              string // the contender's
	what              string // write, read, or the item that was taken
	reads             bool
	asked, begin, end int64 // end is unended if the process was killed meanwhile
}

const unended = math.MaxInt64

func (h hold) String() string {
	if h.lasts() {
		return fmt.Sprintf("%s: %s from %d on", h.name, h.what, h.begin)
	}
	return fmt.Sprintf("%s: %s from %d to %d", h.name, h.what, h.begin, h.end)
}

// lasts says whether nobody has noted the end of a hold.
func (h hold) lasts() bool { return h.end == unended }

// readHolds reads what all contenders of a process have noted, or all there are, in the order in which the holds began.
func readHolds(folder, process string) (holds []hold, err error) {
	records, err := filepath.Glob(filepath.Join(folder, process+"*"+recordSuffix))
	if err != nil {
		return nil, err
	}
	for _, record := range records {
		noted, err := readRecord(record)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", record, err)
		}
		holds = append(holds, noted...)
	}
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.begin, b.begin) })
	return holds, nil
}

func readRecord(path string) (holds []hold, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	name := strings.TrimSuffix(filepath.Base(path), recordSuffix)
	process := name[:strings.LastIndexByte(name, '-')]
	library := process[:strings.LastIndexByte(process, '-')]
	for lines := bufio.NewScanner(file); lines.Scan(); {
		h := hold{library: library, process: process, name: name, end: unended}
		n, err := fmt.Sscan(lines.Text(), &h.what, &h.asked, &h.begin, &h.end)
		if n < 3 {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		h.reads = h.what == "read"
		holds = append(holds, h)
	}
	return holds, nil
}

// killedAt ends the holds of processes that were killed: they believed in them until then at least. Only a contender's last
// hold may lack an end.
func killedAt(holds []hold, moments map[string]int64) error {
	for i, h := range holds {
		if !h.lasts() {
			continue
		}
		moment, killed := moments[h.process]
		last := !slices.ContainsFunc(holds[i+1:], func(later hold) bool { return later.name == h.name })
		if !killed || !last {
			return fmt.Errorf("%v", h)
		}
		holds[i].end = max(moment, h.begin)
	}
	return nil
}

// overlaps says which holds exclude each other and did not, of holds in the order in which they began.
func overlaps(holds []hold) (violations []string) {
	var lastWriter, lastReader hold // of those so far, whose end is the latest
	for _, h := range holds {
		if h.begin < lastWriter.end {
			violations = append(violations, fmt.Sprintf("%v, and %v", lastWriter, h))
		}
		if !h.reads && h.begin < lastReader.end {
			violations = append(violations, fmt.Sprintf("%v, and %v", lastReader, h))
		}
		if last := map[bool]*hold{true: &lastReader, false: &lastWriter}[h.reads]; h.end > last.end {
			*last = h
		}
	}
	return violations
}

// A tally is how much the holds of a test say.
type tally struct {
	holds, contended, across, shared int
	took                             time.Duration
}

// count counts holds: all; those that had to wait for another; those that followed one of another library; and readers that
// read together with one of another library.
func count(holds []hold) (c tally) {
	end := int64(math.MinInt64) // of the last hold so far
	for i, h := range holds {
		c.holds++
		if i == 0 {
			end = h.end
			continue
		}
		before := holds[i-1]
		if h.asked < before.end {
			c.contended++
		}
		if h.library != before.library {
			c.across++
			if h.reads && before.reads && h.begin < before.end {
				c.shared++
			}
		}
		end = max(end, h.end)
	}
	if c.holds > 0 {
		c.took = time.Duration(end - holds[0].begin)
	}
	return c
}

func (c tally) String() string {
	return fmt.Sprintf("%d acquisitions, %d of them contended, %d handed over between libraries, %d read together, %.0f a second, in %v",
		c.holds, c.contended, c.across, c.shared, float64(c.holds)/c.took.Seconds(), c.took.Round(time.Millisecond))
}

func TestHoldsThatExcludeEachOtherAreFound(t *testing.T) {
	write := func(name string, begin, end int64) hold {
		return hold{name: name, library: name, begin: begin, end: end}
	}
	read := func(name string, begin, end int64) hold {
		return hold{name: name, library: name, begin: begin, end: end, reads: true}
	}
	for name, one := range map[string]struct {
		holds []hold
		want  int
	}{
		"one after the other":                   {[]hold{write("a", 1, 2), write("b", 3, 4), write("a", 5, 6)}, 0},
		"at the same instant":                   {[]hold{write("a", 1, 2), write("b", 2, 3)}, 0},
		"readers together":                      {[]hold{read("a", 1, 9), read("b", 2, 3), read("c", 4, 5)}, 0},
		"a writer after the longest reader":     {[]hold{read("a", 1, 9), read("b", 2, 3), write("c", 9, 10)}, 0},
		"two writers":                           {[]hold{write("a", 1, 3), write("b", 2, 4)}, 1},
		"a writer within a writer":              {[]hold{write("a", 1, 9), write("b", 2, 3), write("c", 4, 5)}, 2},
		"a writer beside the longest reader":    {[]hold{read("a", 1, 9), read("b", 2, 3), write("c", 4, 10)}, 1},
		"a reader beside a writer":              {[]hold{write("a", 1, 3), read("b", 2, 4)}, 1},
		"one that was killed later":             {[]hold{write("a", 1, unended), write("b", 2, 3)}, 1},
		"a writer beside a reader and a writer": {[]hold{read("a", 1, 4), write("b", 2, 5), write("c", 3, 6)}, 3},
	} {
		if got := overlaps(one.holds); len(got) != one.want {
			t.Errorf("%s: %q, want %d", name, got, one.want)
		}
	}
}

func TestHoldsOfTheKilledEndThen(t *testing.T) {
	cut := hold{process: "kazoo-1", name: "kazoo-1-0", begin: 5, end: unended}
	later := hold{process: "kazoo-1", name: "kazoo-1-0", begin: 9, end: 10}
	for name, one := range map[string]struct {
		holds   []hold
		moments map[string]int64
		want    bool
	}{
		"killed":              {[]hold{cut}, map[string]int64{"kazoo-1": 7}, true},
		"another was killed":  {[]hold{cut}, map[string]int64{"curator-1": 7}, false},
		"nobody was killed":   {[]hold{cut}, nil, false},
		"it went on":          {[]hold{cut, later}, map[string]int64{"kazoo-1": 7}, false},
		"all have ended":      {[]hold{later}, nil, true},
		"killed while it was": {[]hold{cut}, map[string]int64{"kazoo-1": 4}, true},
	} {
		err := killedAt(one.holds, one.moments)
		if (err == nil) != one.want {
			t.Errorf("%s: %v", name, err)
		}
		if end := one.holds[0].end; one.want && end != 10 && end != max(5, one.moments["kazoo-1"]) {
			t.Errorf("%s: it ended at %d", name, end)
		}
	}
}

func TestRecordsAreReadAsTheyAreWritten(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		must(t, os.WriteFile(filepath.Join(folder, name+recordSuffix), []byte(text), 0o600))
	}
	write("go-zookeeper-7-0", "write 1 5 6\nwrite 7 8")
	write("kazoo-8-1", "read 2 3 4\n")
	holds, err := readHolds(folder, "")
	must(t, err)
	want := []hold{
		{"kazoo", "kazoo-8", "kazoo-8-1", "read", true, 2, 3, 4},
		{"go-zookeeper", "go-zookeeper-7", "go-zookeeper-7-0", "write", false, 1, 5, 6},
		{"go-zookeeper", "go-zookeeper-7", "go-zookeeper-7-0", "write", false, 7, 8, unended},
	}
	if !slices.Equal(holds, want) {
		t.Errorf("%v, want %v", holds, want)
	}
	if c := count(holds[:2]); c.holds != 2 || c.contended != 1 || c.across != 1 || c.took != 3 {
		t.Errorf("counted %+v", c)
	}
	write("kazoo-8-2", "read\n")
	if _, err := readHolds(folder, ""); errors.Is(err, nil) {
		t.Error("a line that says nothing was read")
	}
}

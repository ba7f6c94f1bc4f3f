package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// noon is when the tests begin: the beginning of a span.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// last are the newest numbers of a chart.
func last(count int, numbers []float64) string {
	return strings.Trim(fmt.Sprint(numbers[len(numbers)-count:]), "[]")
}

func TestTheLastHourIsKeptByTheMostOfEachSpan(t *testing.T) {
	t.Parallel()
	h := history{begun: noon.Add(-time.Hour)}
	h.noteWaits(noon, 3, 1.5)
	h.noteWaits(noon.Add(span/2), 7, 1)
	h.noteWaits(noon.Add(span-1), 2, 1)
	h.noteWaits(noon.Add(2*span), 2, 9)
	h.noteAway(noon.Add(span))
	drawn := h.chart(noon.Add(2 * span))
	for _, one := range []struct{ what, got, want string }{
		{"waiting", last(4, drawn.Waiting), "-1 7 -1 2"},
		{"longest", last(4, drawn.Longest), "-1 1.5 -1 9"},
		{"lost", last(4, drawn.Lost), "-1 -1 -1 -1"},
		{"away", fmt.Sprint(drawn.Away[spans-4:]), "[false false true false]"},
	} {
		if one.got != one.want {
			t.Errorf("%s: %s, not %s", one.what, one.got, one.want)
		}
	}
	if later := h.chart(noon.Add(time.Hour + 3*span)); slices.Max(later.Waiting) != unknown || slices.Contains(later.Away, true) {
		t.Errorf("after an hour: %v", later)
	}
}

func TestALossBelongsToTheSpanInWhichItWasSeen(t *testing.T) {
	t.Parallel()
	h := history{begun: noon.Add(-time.Hour)}
	h.noteLosses(noon, 5) // before anybody looked
	h.noteLosses(noon.Add(span), 7)
	h.noteLosses(noon.Add(span+1), 8)
	h.noteLosses(noon.Add(2*span), 1) // of a sidecar that has begun anew
	h.noteLosses(noon.Add(3*span), 1)
	if got := last(5, h.chart(noon.Add(3*span)).Lost); got != "-1 0 3 1 0" {
		t.Errorf("lost: %s", got)
	}
	if !h.lostAt.Equal(noon.Add(2 * span)) {
		t.Errorf("the last loss is at %v", h.lostAt)
	}
}

func TestTheLastHourTakesAFewKilobytesWhateverGoesOn(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(history{}); size > 8<<10 {
		t.Errorf("%d bytes", size)
	}
	w := newWatcher(Options{})
	for i := range 3 { // what has gone is forgotten
		w.seen = &look{}
		for j := range 5 {
			w.seen.Contended = append(w.seen.Contended, contention{Name: fmt.Sprint(i, j), Holder: &party{}})
		}
		w.noteHolders(noon)
	}
	if len(w.holders) != 5 {
		t.Errorf("%d holders", len(w.holders))
	}
}

func TestTheContactIsKnownSinceItChanged(t *testing.T) {
	t.Parallel()
	w := newWatcher(Options{})
	w.past.begun = noon
	shows := func(at time.Duration, contact string, since time.Duration, first bool) {
		t.Helper()
		w.noteContact(noon.Add(at), contact, "")
		if got := w.overview(noon.Add(at)); got.Contact != contact || got.Since != since.Seconds() || got.First != first {
			t.Errorf("%v: %s since %v s, first %v", at, got.Contact, got.Since, got.First)
		}
	}
	shows(time.Second, contactLost, time.Second, true)
	shows(time.Minute, contactLost, time.Minute, true)
	shows(2*time.Minute, contactGood, 0, false)
	shows(3*time.Minute, contactGood, time.Minute, false)
	shows(4*time.Minute, contactNone, 0, false)
	away := fmt.Sprint(w.overview(noon.Add(4 * time.Minute)).Chart.Away[spans-9:])
	if away != "[true false true false false false false false true]" {
		t.Errorf("away: %s", away)
	}
}

func TestWhatWasSeenIsDoubtedWithoutContactAndLookedAtAgainWithIt(t *testing.T) {
	t.Parallel()
	w := newWatcher(Options{})
	w.past.begun, w.asked = noon, noon
	doubts := func(when, want string) {
		t.Helper()
		if listed := w.waits(noon).Failure; listed != want {
			t.Errorf("%s: %q, not %q", when, listed, want)
		}
	}
	doubts("before a look", "the console has not looked yet")
	w.seen = &look{}
	for _, one := range []struct {
		contact, doubt string
		sooner         int
	}{{contactGood, "", 0}, {contactLost, "no contact", 0}, {contactGood, "", 1}} {
		w.noteContact(noon, one.contact, "")
		doubts("contact "+one.contact, one.doubt)
		if shown := w.overview(noon).Failure; shown != one.doubt || len(w.sooner) != one.sooner {
			t.Errorf("contact %s: %q, and looks sooner %d", one.contact, shown, len(w.sooner))
		}
	}
}

func TestAHolderIsKnownSinceItWasFirstSeen(t *testing.T) {
	t.Parallel()
	w := newWatcher(Options{})
	for _, one := range []struct {
		at    time.Duration
		token int64
		held  float64
	}{{0, 4, 0}, {time.Minute, 4, 60}, {2 * time.Minute, 5, 0}, {5 * time.Minute, 5, 180}} {
		w.seen = &look{Contended: []contention{{Name: "orders", Holder: &party{}, token: one.token}}}
		if w.noteHolders(noon.Add(one.at)); w.seen.Contended[0].Held != one.held {
			t.Errorf("%v: held for %v s", one.at, w.seen.Contended[0].Held)
		}
	}
}

// waiting has each of these callers wait for a lock whose holder is the one of that name.
func waiting(lines ...string) *look {
	l := &look{holders: map[string]party{}}
	for i, line := range lines {
		words := strings.Fields(line) // lock, holder, waiter
		l.holders[words[0]] = party{Owner: words[1]}
		l.waits = append(l.waits, wait{Waiter: party{Owner: words[2], Lock: words[0], Age: float64(10 - i)}})
	}
	return l
}

func TestCallersWithALeaseForEachLockAreInACircleByTheirNames(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		what   string
		seen   *look
		circle string
	}{
		{"two", waiting("a alice bob", "b bob alice"), "2 9"},
		{"three, and one behind them", waiting("a alice bob", "b bob carol", "c carol alice", "c carol dave"), "3 8"},
		{"a chain", waiting("a alice bob", "b bob carol"), ""},
		{"replicas of one name", waiting("a web web"), ""},
		{"replicas of one name at two locks", waiting("a web web", "b web web"), ""},
	} {
		one.seen.guess()
		one.seen.arrange()
		got := ""
		for _, found := range one.seen.Circles {
			got += fmt.Sprint(len(found.Parties), " ", found.Age)
		}
		if got != one.circle {
			t.Errorf("%s: %q, not %q", one.what, got, one.circle)
		}
		if first := one.seen.waits[0]; first.Circle != (one.circle != "") {
			t.Errorf("%s: first comes %v", one.what, first)
		}
	}
}

func TestThePageBeginsWithTenCirclesHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	w := newWatcher(Options{})
	w.seen = &look{at: noon}
	for range 30 {
		w.seen.Circles = append(w.seen.Circles, circle{Parties: make([]party, 2)})
		w.seen.Contended = append(w.seen.Contended, contention{})
	}
	shown := w.overview(noon)
	if got := fmt.Sprint(len(shown.Seen.Circles), len(shown.Seen.Contended), shown.More, shown.Stuck); got != "10 10 20 60" {
		t.Errorf("shown: %s", got)
	}
}

package sink

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// A reader takes what is written, unless it has stopped or is broken.
type reader struct {
	mu     sync.Mutex
	text   bytes.Buffer
	stops  chan struct{} // while it is not nil and not closed, nothing is taken
	broken error
	tears  int // of what is written to a broken one, so much arrives
}

func (r *reader) Write(lines []byte) (int, error) {
	r.mu.Lock()
	stops := r.stops
	r.mu.Unlock()
	if stops != nil {
		<-stops
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		n := min(r.tears, len(lines))
		r.text.Write(lines[:n])
		return n, r.broken
	}
	return r.text.Write(lines)
}

func (r *reader) breaks(err error, tears int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken, r.tears = err, tears
}

func (r *reader) read() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// A counted log says where lines are missing, and counts them.
type counted struct {
	*Log
	dropped int
}

func begin(to *Sink, name string, wait time.Duration) *counted {
	c := &counted{}
	c.Log = to.Log(Options{
		Wait:    wait,
		Gap:     func(lines int) []byte { return fmt.Appendf(nil, "%s misses %d\n", name, lines) },
		Dropped: func(lines int) { c.dropped += lines },
	})
	return c
}

func (c *counted) say(text string) { fmt.Fprintln(c, text) }

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestLinesAreWrittenInBlocksInTheirOrder(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		to := &reader{}
		s := New(to)
		log, audit := begin(s, "log", Delay), begin(s, "audit", 0)
		log.say("first")
		same(t, "at first", to.read(), "")
		<-time.After(Delay)
		same(t, "after a while", to.read(), "first\n")
		log.say("second")
		audit.say("third")
		same(t, "with a line that does not wait", to.read(), "first\nsecond\nthird\n")
		log.say("fourth")
		_ = log.Sync()
		same(t, "when told", to.read(), "first\nsecond\nthird\nfourth\n")
		log.say(strings.Repeat("x", block))
		same(t, "much at once", len(to.read()), len("first\nsecond\nthird\nfourth\n")+block+1)
		log.say("last")
		same(t, "closed", s.Close(), true)
		same(t, "at the end", strings.HasSuffix(to.read(), "x\nlast\n"), true)
		log.say("late")
		same(t, "dropped after the end", log.dropped, 1)
	})
}

// A line that waits briefly takes along what has waited for longer, and is not kept by it.
func TestALineWaitsNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		to := &reader{}
		s := New(to)
		log, audit := begin(s, "log", Delay), begin(s, "audit", Brief)
		log.say("first")
		<-time.After(time.Millisecond)
		audit.say("second")
		<-time.After(time.Millisecond)
		audit.say("third")
		same(t, "at first", to.read(), "")
		<-time.After(time.Millisecond)
		same(t, "two milliseconds after the second", to.read(), "first\nsecond\nthird\n")
		log.say("fourth")
		<-time.After(Delay - time.Millisecond)
		same(t, "before its time", to.read(), "first\nsecond\nthird\n")
		<-time.After(time.Millisecond)
		same(t, "after it", to.read(), "first\nsecond\nthird\nfourth\n")
		s.Close()
	})
}

// A caller that writes a line does not wait for the reader.
func TestALineDoesNotWaitForItsReader(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		to := &reader{stops: make(chan struct{})}
		s := New(to)
		log, audit := begin(s, "log", Delay), begin(s, "audit", 0)
		audit.say("0")
		same(t, "takes", audit.Takes(), true)
		synctest.Wait() // it is being written
		began := time.Now()
		long := strings.Repeat("x", 1<<10-1)
		for range 2 * room >> 10 {
			log.say(long)
		}
		same(t, "waited", time.Since(began), 0)
		same(t, "lines of the log that are missing", log.dropped, room>>10)
		same(t, "the audit takes while the log is full", audit.Takes(), true)
		for range room >> 10 {
			audit.say(long)
		}
		same(t, "the audit's", audit.dropped, 1) // one line is being written
		same(t, "takes while it is full", audit.Takes(), false)
		same(t, "closed in time", s.Close(), false)
		same(t, "for a second", time.Since(began), farewell)
		close(to.stops)
		text := to.read()
		for _, line := range []string{"0\n", fmt.Sprintf("log misses %d\n", log.dropped), "audit misses 1\n"} {
			same(t, line, strings.Count(text, line), 1)
		}
		same(t, "lines", strings.Count(text, "\n"), 1+2*room>>10-1+2)
		same(t, "closed", s.Close(), true)
	})
}

func TestALogThatIsReadAgainGoesOnBehindALineAboutTheGap(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		to := &reader{stops: make(chan struct{})}
		s := New(to)
		log := begin(s, "log", 0)
		log.say("first")
		synctest.Wait()
		log.say(strings.Repeat("x", room-len("first\n")-1))
		log.say("missing")
		<-time.After(stuck)
		close(to.stops)
		same(t, "gap", strings.HasSuffix(to.read(), "x\nlog misses 1\n"), true)
		same(t, "takes", log.Takes(), true)
		log.say("on")
		same(t, "goes on", strings.HasSuffix(to.read(), "log misses 1\non\n"), true)
		s.Close()
	})
}

func TestAWriteThatFailsIsCountedAndTriedAgain(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		to := &reader{}
		s := New(to)
		log, audit := begin(s, "log", Delay), begin(s, "audit", 0)
		to.breaks(errors.New("no space left on device"), len("first\nsec"))
		log.say("first")
		audit.say("second")
		same(t, "while the disk is full", to.read(), "first\nsec")
		same(t, "dropped", log.dropped+audit.dropped, 2)
		same(t, "takes", audit.Takes(), false)
		to.breaks(errors.New("no space left on device"), 0)
		audit.say("third")
		to.read()
		to.breaks(nil, 0)
		<-time.After(again)
		same(t, "without a further line", to.read(), "first\nsec\nlog misses 1\naudit misses 2\n")
		same(t, "dropped", log.dropped+audit.dropped, 3)
		same(t, "takes again", audit.Takes(), true)
		audit.say("fourth")
		s.Close()
		same(t, "at the end", to.read(), "first\nsec\nlog misses 1\naudit misses 2\nfourth\n")
	})
}

func TestALogTakesLinesAfterAWriteOfNothing(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := New(&reader{})
		audit := begin(s, "audit", 0)
		audit.say("first")
		audit.say("second")
		_ = audit.Sync() // and nothing waits any more
		<-time.After(2 * stuck)
		same(t, "takes", audit.Takes(), true)
		s.Close()
	})
}

// Lines of a log that has no words of its own for a gap are missed, too.
func TestAFailedWriteOfAnyLogIsTriedAgain(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		to := &reader{}
		s := New(to)
		plain, audit := s.Log(Options{}), begin(s, "audit", 0)
		to.breaks(errors.New("no space left on device"), 0)
		fmt.Fprintln(plain, "first")
		same(t, "while the disk is full", to.read(), "")
		to.breaks(nil, 0)
		<-time.After(again)
		same(t, "without a further line", to.read(), "1 lines are missing here\n")
		same(t, "takes", audit.Takes(), true)
		s.Close()
	})
}

func TestALogTakesNothingWhileAWriteTakesLong(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		to := &reader{stops: make(chan struct{})}
		s := New(to)
		audit := begin(s, "audit", 0)
		audit.say("first")
		synctest.Wait()
		same(t, "at first", audit.Takes(), true)
		<-time.After(stuck)
		same(t, "after a second", audit.Takes(), false)
		close(to.stops)
		to.read()
		same(t, "when it was written", audit.Takes(), true)
		s.Close()
	})
}

// told is what a caller hears that asks whether its lines are written.
func told(of *counted, missing int) (answers func() []bool) {
	var mu sync.Mutex
	var heard []bool
	of.Written(missing, func(all bool) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, all)
	})
	return func() []bool {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(heard)
	}
}

func TestWhetherALineIsWrittenIsToldOnceThatIsKnown(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		to := &reader{}
		s := New(to)
		log, audit := begin(s, "log", Delay), begin(s, "audit", Brief)
		answer := func(what string, of func() []bool, want string) {
			t.Helper()
			same(t, what, fmt.Sprint(of()), want)
		}
		answer("nothing waits", told(audit, 0), "[true]")
		audit.say("first")
		first := told(audit, 0)
		answer("while it waits for others", first, "[]")
		<-time.After(Brief)
		answer("written", first, "[true]")

		to.breaks(errors.New("no space left on device"), 0)
		log.say("another log's")
		audit.say("second")
		second := told(audit, 0)
		<-time.After(Brief)
		answer("on a full disk", second, "[false]")
		answer("asked afterwards", told(audit, 0), "[false]")
		answer("of the lines after the second", told(audit, 1), "[true]")
		to.breaks(nil, 0)
		audit.say("third")
		third, behindALoss := told(audit, 1), told(audit, 0)
		answer("asked late, behind a line that will be written", behindALoss, "[false]")
		<-time.After(Brief)
		answer("a line after the gap", third, "[true]")

		to.stops = make(chan struct{})
		audit.say("fourth")
		<-time.After(Brief)
		synctest.Wait()
		inWrite := told(audit, 1)
		audit.say("fifth")
		behind := told(audit, 1)
		<-time.After(stuck - time.Nanosecond)
		answer("while the disk hangs", inWrite, "[]")
		<-time.After(time.Nanosecond)
		answer("that hangs for too long", inWrite, "[false]")
		answer("the line behind it", behind, "[false]")
		answer("asked while it hangs", told(audit, 1), "[false]")
		close(to.stops)
		answer("written after all", inWrite, "[false]")
		s.Close()
		answer("closed", told(audit, 1), "[false]")
	})
}

func TestThatLinesCannotBeWrittenIsToldOnceAndThatTheyCanAgain(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		to, said := &reader{}, ""
		s := New(to)
		log := s.Log(Options{
			Ails:  func(why error) { said += why.Error() + "; " },
			Heals: func(missing int) { said += fmt.Sprint(missing, " are missing; ") },
		})
		hears := func(want string) {
			t.Helper()
			to.read()
			same(t, "told", said, want)
			said = ""
		}
		fmt.Fprintln(log, "first")
		hears("")
		to.breaks(errors.New("no space left on device"), 0)
		for range 3 {
			fmt.Fprintln(log, "more")
			synctest.Wait()
		}
		<-time.After(3 * again)
		hears("no space left on device; ")
		to.breaks(nil, 0)
		<-time.After(again)
		hears("3 are missing; ")
		to.stops = make(chan struct{})
		fmt.Fprintln(log, "slow")
		<-time.After(2 * stuck)
		hears("a write takes longer than a second; ")
		close(to.stops)
		hears("0 are missing; ")
		s.Close()
	})
}

package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A call is one caller's Next, with what came of it once that is known.
type call struct {
	cancel context.CancelFunc
	over   chan struct{}
	got    string // "first-last" or the error
}

// ask calls Next in a goroutine, and returns when that waits for something.
func (w world) ask(issuer *recipes.Issuer, count int64) *call {
	ctx, cancel := context.WithCancel(w.living)
	c := &call{cancel: cancel, over: make(chan struct{})}
	go func() {
		defer close(c.over)
		numbers, err := issuer.Next(ctx, count)
		c.got = told(numbers, err)
	}()
	time.Sleep(time.Nanosecond) // passes when everybody waits; hooks may wait so too
	return c
}

func told(numbers recipes.Numbers, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d-%d", numbers.First, numbers.Last)
}

// answers are what came of calls, in one string.
func answers(calls ...*call) string {
	var all []string
	for _, c := range calls {
		<-c.over
		all = append(all, c.got)
	}
	return strings.Join(all, " ")
}

func writes(r *standin.Reader) int { return r.Count("Commit") }

func reads(r *standin.Reader) int {
	return r.Count("Get") + r.Count("Children") + r.Count("CatchUp") + r.Count("Watch")
}

func TestNumbersThatNobodyElseWantsTakeOneRequestEach(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		if _, err := issuer.Next(w.Context(), 1); err != nil {
			t.Fatal(err)
		}
		wrote, read := writes(reader), reads(reader)
		for i := range int64(50) {
			if numbers, err := issuer.Next(w.Context(), 3); told(numbers, err) != fmt.Sprintf("%d-%d", 2+3*i, 4+3*i) {
				t.Fatalf("%+v, %v", numbers, err)
			}
		}
		if writes(reader)-wrote != 50 || reads(reader) != read {
			t.Errorf("%d writes, %d reads", writes(reader)-wrote, reads(reader)-read)
		}
	})
}

func TestCallersThatWaitTogetherShareAWrite(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		reader.Delay(10 * time.Millisecond)
		var calls []*call
		before := writes(reader)
		for range 64 {
			calls = append(calls, w.ask(issuer, 2))
		}
		got := answers(calls...)
		if first := "1-2 3-4 5-6"; !strings.HasPrefix(got, first) || !strings.HasSuffix(got, "127-128") {
			t.Error(got)
		}
		if n := writes(reader) - before; n > 2 {
			t.Errorf("%d writes", n)
		}
	})
}

// Otherwise a caller could get a smaller number than one that was returned, elsewhere, before it asked.
func TestWhoeverComesWhileAWriteIsUnderWayWaitsForTheNext(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		answers(w.ask(issuer, 1))
		reader.After(once("Commit", func() error { // it is carried out; the reply is on its way
			numbers, err := w.next(w.NewReader(), 1)
			if told(numbers, err) != "3-3" {
				t.Errorf("elsewhere: %+v, %v", numbers, err)
			}
			late := w.ask(issuer, 1)
			go func() {
				<-late.over
				if late.got != "4-4" {
					t.Errorf("late: %s", late.got)
				}
			}()
			return nil
		}))
		if got := answers(w.ask(issuer, 1)); got != "2-2" {
			t.Error(got)
		}
	})
}

func TestAReplyThatIsLostSkipsNumbersAndRepeatsNone(t *testing.T) {
	for want, script := range map[string]func(*standin.Reader){
		"2-2": func(r *standin.Reader) { r.Before(once("Commit", replyLost)) },
		"3-3": func(r *standin.Reader) { r.After(once("Commit", replyLost)) },
	} {
		inBubble(t, func(w world) {
			reader, _ := w.made(1)
			issuer := recipes.NewIssuer(invoices, reader)
			answers(w.ask(issuer, 1))
			script(reader)
			if got := answers(w.ask(issuer, 1)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestCallersMayLeaveWhileTheyWait(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		answers(w.ask(issuer, 1))
		reader.Delay(time.Second)
		leader, second, third, fourth := w.ask(issuer, 1), w.ask(issuer, 1), w.ask(issuer, 1), w.ask(issuer, 1)
		third.cancel()
		if got := answers(third); got != context.Canceled.Error() {
			t.Errorf("third: %s", got)
		}
		leader.cancel() // with its write under way
		if got := answers(leader); got != context.Canceled.Error() {
			t.Errorf("leader: %s", got)
		}
		got := answers(second, fourth)
		if got != "2-2 3-3" && got != "3-3 4-4" {
			t.Errorf("others: %s", got)
		}
		if got := answers(w.ask(issuer, 1)); got != "4-4" && got != "5-5" {
			t.Errorf("next: %s", got)
		}
	})
}

func TestALeaderThatPanicsTakesNobodyAlong(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		answers(w.ask(issuer, 1))
		reader.Delay(time.Second)
		var waiting *call
		reader.Before(once("Commit", func() error {
			waiting = w.ask(issuer, 5)
			panic("in the store")
		}))
		func() {
			defer func() { _ = recover() }()
			_, _ = issuer.Next(w.Context(), 1)
		}()
		if got := answers(waiting); got != "2-6" {
			t.Errorf("waiting: %s", got)
		}
	})
}

func TestPastTheLastNumberNothingIsHandedOut(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(math.MaxInt64 - 9) // ten are left
		issuer := recipes.NewIssuer(invoices, reader)
		reader.Delay(time.Second)
		first := w.ask(issuer, 4)
		calls := []*call{w.ask(issuer, 5), w.ask(issuer, 2), w.ask(issuer, 1), w.ask(issuer, math.MaxInt64)}
		none := recipes.ErrExhausted.Error()
		want := fmt.Sprintf("%d-%d %s %d-%d %s", math.MaxInt64-5, math.MaxInt64-1, none, math.MaxInt64, math.MaxInt64, none)
		if got := answers(first) + " " + answers(calls...); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		if _, err := issuer.Next(w.Context(), 1); !errors.Is(err, recipes.ErrExhausted) || w.stored() != math.MaxInt64 {
			t.Errorf("%v; stored %d", err, w.stored())
		}
	})
}

func TestAnEnsembleThatIsAwayIsToldToAllThatWait(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		answers(w.ask(issuer, 1))
		reader.Delay(time.Second)
		var late *call
		reader.Before(once("Commit", func() error {
			late = w.ask(issuer, 1)
			return recipes.ErrUnreachable
		}))
		want := recipes.ErrUnreachable.Error()
		if got := answers(w.ask(issuer, 1)); got != want {
			t.Errorf("first: %s", got)
		}
		if got := answers(late); got != want {
			t.Errorf("late: %s", got)
		}
		if got := answers(w.ask(issuer, 1)); got != "2-2" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

func TestABadEndIsToldOnlyToThoseItWasAskedFor(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		issuer := recipes.NewIssuer(invoices, reader)
		var later *call
		looks := 0
		reader.After(func(o standin.Operation) error { // between the last look and its answer
			if o.Name == "Children" {
				looks++
			}
			if o.Name == "Children" && looks == 2 {
				w.made(1)
				later = w.ask(issuer, 1)
			}
			return nil
		})
		if got := answers(w.ask(issuer, 1)); got != recipes.ErrNoSequence.Error() {
			t.Errorf("before it was made: %s", got)
		}
		if got := answers(later); got != "1-1" {
			t.Errorf("after: %s", got)
		}
	})
}

// Versions restart, so that a write meant for a sequence that is gone could fit one that has come in its place.
func TestAnIncarnationThatIsGoneIsNeverWrittenTo(t *testing.T) {
	for name, remake := range map[string]func(world) error{
		"by us": world.remake,
		"by others": func(w world) error {
			if err := invoices.Delete(w.Context(), w.NewReader()); err != nil {
				return err
			}
			w.put(eightBytes(0), embedded.Persistent)
			return nil
		},
	} {
		inBubble(t, func(w world) {
			reader, _ := w.made(1)
			issuer := recipes.NewIssuer(invoices, reader)
			old, _ := issuer.Next(w.Context(), 1000)
			version := w.version()
			if err := remake(w); err != nil {
				t.Fatal(err)
			}
			_ = w.SetVersion(invoices.Path, version)
			numbers, err := issuer.Next(w.Context(), 1)
			if told(numbers, err) != "1-1" || numbers.Incarnation <= old.Incarnation || w.stored() != 1 {
				t.Errorf("%s: %+v after %+v, %v; stored %d", name, numbers, old, err, w.stored())
			}
		})
	}
}

func (w world) version() int32 {
	w.Helper()
	node, err := w.Read(invoices.Path)
	if err != nil {
		w.Fatal(err)
	}
	return node.Version
}

func TestASequenceThatIsDeniedIsSaidToBe(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		answers(w.ask(issuer, 1))
		if err := w.Deny(invoices.Path, true); err != nil {
			t.Fatal(err)
		}
		_, next := issuer.Next(w.Context(), 1)
		_, advance := invoices.AdvanceTo(w.Context(), reader, 5)
		_, read := invoices.Read(w.Context(), reader)
		for _, err := range []error{next, advance, read, invoices.Delete(w.Context(), reader)} {
			if !errors.Is(err, recipes.ErrDenied) {
				t.Error(err)
			}
		}
		_ = w.Deny(invoices.Path, false)
		if got := answers(w.ask(issuer, 1)); got != "2-2" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

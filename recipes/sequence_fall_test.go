package recipes_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// setBack stores a smaller number, as Curator's forceSet does.
func (w world) setBack(to int64) {
	w.Helper()
	if err := w.Set(invoices.Path, eightBytes(to)); err != nil {
		w.Fatal(err)
	}
}

func TestASequenceThatIsSetBackRepeatsNothing(t *testing.T) {
	for name, next := range map[string]func(world, *recipes.Issuer) (recipes.Numbers, error){
		"strict": func(w world, issuer *recipes.Issuer) (recipes.Numbers, error) { return issuer.Next(w.Context(), 1) },
		"relaxed": func(w world, issuer *recipes.Issuer) (recipes.Numbers, error) {
			numbers, _, err := issuer.NextRelaxed(w.Context(), 1)
			return numbers, err
		},
	} {
		inBubble(t, func(w world) {
			reader, _ := w.made(1)
			issuer := recipes.NewIssuer(invoices, reader)
			if _, err := issuer.Next(w.Context(), 12); err != nil {
				t.Fatal(err)
			}
			w.setBack(9)
			for range 2 {
				if numbers, err := next(w, issuer); !errors.Is(err, recipes.ErrFell) || w.stored() != 9 {
					t.Errorf("%s: %+v behind 12, %v; stored %d", name, numbers, err, w.stored())
				}
			}
			if _, err := invoices.AdvanceTo(w.Context(), w.NewReader(), 12); err != nil {
				t.Error(err)
			}
			if numbers, err := next(w, issuer); err != nil || numbers.First != 13 {
				t.Errorf("%s, advanced again: %+v, %v", name, numbers, err)
			}
		})
	}
}

// Who has seen a number stored knows that it was handed out, by whomever.
func TestWhatOthersHandedOutIsNotRepeatedEither(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		_, _ = w.next(w.NewReader(), 100)
		if got := answers(w.ask(issuer, math.MaxInt64)); got != recipes.ErrExhausted.Error() {
			t.Error(got)
		}
		w.setBack(50)
		if got := answers(w.ask(issuer, 1)); got != recipes.ErrFell.Error() {
			t.Error(got)
		}
	})
}

func TestAReaderThatIsLateShowsNoFall(t *testing.T) {
	inBubble(t, func(w world) {
		late, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, late)
		answers(w.ask(issuer, 1))
		late.Lag()
		answers(w.ask(issuer, 1))
		_, _ = w.next(w.NewReader(), 1)
		if got := answers(w.ask(issuer, 1)); got != "4-4" {
			t.Error(got)
		}
	})
}

// A slowReader has something happen behind its next read.
type slowReader struct {
	recipes.Store

	behind func()
}

func (s *slowReader) Get(ctx context.Context, path string) (recipes.Node, error) {
	node, err := s.Store.Get(ctx, path)
	if behind := s.behind; behind != nil {
		s.behind = nil
		behind()
	}
	return node, err
}

func TestWhoIsOvertakenByAGuardedIssuerSeesNoFall(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		store := &slowReader{Store: reader}
		issuer := recipes.NewIssuer(invoices, store)
		guarded := issuer.Guarded(nil)
		answers(w.ask(issuer, 1))
		answers(w.ask(guarded, 1))
		store.behind = func() { answers(w.ask(guarded, 1)) }
		if got := answers(w.ask(issuer, 1)); got != "4-4" {
			t.Error(got)
		}
		w.setBack(2)
		for _, each := range []*recipes.Issuer{guarded, issuer} {
			if got := answers(w.ask(each, 1)); got != recipes.ErrFell.Error() {
				t.Error(got)
			}
		}
	})
}

func TestASequenceThatIsMadeAnewHasNotFallen(t *testing.T) {
	for name, first := range map[string]int64{"lower": 1, "higher": 50} {
		inBubble(t, func(w world) {
			reader, _ := w.made(20)
			issuer := recipes.NewIssuer(invoices, reader)
			answers(w.ask(issuer, 5))
			if err := invoices.Delete(w.Context(), w.NewReader()); err != nil {
				t.Fatal(err)
			}
			w.made(first)
			if numbers, err := issuer.Next(w.Context(), 1); err != nil || numbers.First != first {
				t.Errorf("%s: %+v, %v", name, numbers, err)
			}
		})
	}
}

package recipes_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var invoices = recipes.Sequence{Path: "/sequences/invoices"}

func eightBytes(number int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(number)) }

// made makes the sequence and returns what it is made through.
func (w world) made(first int64) (*standin.Reader, recipes.Count) {
	w.Helper()
	reader := w.NewReader()
	count, err := invoices.Create(w.Context(), reader, first)
	if err != nil {
		w.Fatal(err)
	}
	return reader, count
}

// put makes a sequence's node as other programs do.
func (w world) put(data []byte, mode embedded.Mode) {
	w.Helper()
	owner := int64(0)
	if mode == embedded.Ephemeral {
		owner = w.session().ID()
	}
	if _, err := w.Create(invoices.Path, data, mode, owner); err != nil {
		w.Fatal(err)
	}
}

// stored is the number in the sequence's node.
func (w world) stored() int64 {
	w.Helper()
	node, err := w.Read(invoices.Path)
	if err != nil || len(node.Data) != 8 {
		w.Fatalf("stored: %q, %v", node.Data, err)
	}
	return int64(binary.BigEndian.Uint64(node.Data))
}

// next issues numbers through an issuer of its own.
func (w world) next(store recipes.Store, count int64) (recipes.Numbers, error) {
	return recipes.NewIssuer(invoices, store).Next(w.Context(), count)
}

// once has hook called for the first operation with this name, and for no other.
func once(name string, hook func() error) standin.Hook {
	called := false
	return func(o standin.Operation) error {
		if o.Name != name || called {
			return nil
		}
		called = true
		return hook()
	}
}

func replyLost() error { return recipes.ErrOutcomeUnknown }

func TestASequenceBeginsWithItsFirstNumber(t *testing.T) {
	for _, first := range []int64{1, 1000, 0, -5, math.MaxInt64, math.MinInt64 + 1} {
		inBubble(t, func(w world) {
			reader, made := w.made(first)
			count, err := invoices.Read(w.Context(), reader)
			if err != nil || count != made || count.Last != first-1 || count.Incarnation <= 0 {
				t.Errorf("made %+v, read %+v, %v", made, count, err)
			}
			numbers, err := w.next(reader, 1)
			if err != nil || numbers.First != first || numbers.Last != first || numbers.Incarnation != made.Incarnation {
				t.Errorf("next: %+v, %v", numbers, err)
			}
			if w.stored() != first {
				t.Errorf("stored: %d", w.stored())
			}
		})
	}
}

func TestASequenceIsMadeOnce(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		if _, err := invoices.Create(w.Context(), reader, 500); !errors.Is(err, recipes.ErrSequenceExists) {
			t.Errorf("second: %v", err)
		}
		if w.stored() != 0 {
			t.Errorf("stored: %d", w.stored())
		}
	})
}

func TestALostReplyToCreateIsFoundOut(t *testing.T) {
	for name, script := range map[string]func(*standin.Reader, world){
		"made":     func(r *standin.Reader, _ world) { r.After(once("Commit", replyLost)) },
		"not made": func(r *standin.Reader, _ world) { r.Before(once("Commit", replyLost)) },
	} {
		inBubble(t, func(w world) {
			reader := w.NewReader()
			script(reader, w)
			made, err := invoices.Create(w.Context(), reader, 7)
			node, _ := w.Read(invoices.Path)
			if err != nil || made.Last != 6 || made.Incarnation != node.Czxid {
				t.Errorf("%s: %+v, %v; node of %d", name, made, err, node.Czxid)
			}
			if names := w.Names(invoices.Path); len(names) != 1 {
				t.Errorf("%s: children %q", name, names)
			}
		})
	}
}

func TestASequenceThatSomebodyElseMadeMeanwhileIsTheirs(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		reader.Before(once("Commit", func() error {
			_, _ = w.made(100)
			return recipes.ErrOutcomeUnknown
		}))
		if _, err := invoices.Create(w.Context(), reader, 7); !errors.Is(err, recipes.ErrSequenceExists) || w.stored() != 99 {
			t.Errorf("%v, stored %d", err, w.stored())
		}
	})
}

func TestWhatBecameOfALostWriteIsUnknownIfTheEnsembleStaysAway(t *testing.T) {
	for name, write := range map[string]func(context.Context, recipes.Store) error{
		"create": func(ctx context.Context, s recipes.Store) error {
			_, err := recipes.Sequence{Path: "/sequences/new"}.Create(ctx, s, 1)
			return err
		},
		"advance": func(ctx context.Context, s recipes.Store) error {
			_, err := invoices.AdvanceTo(ctx, s, 9)
			return err
		},
		"delete": invoices.Delete,
	} {
		for _, sent := range []bool{true, false} {
			inBubble(t, func(w world) {
				reader, _ := w.made(1)
				lost := false
				reader.Before(func(o standin.Operation) error {
					switch {
					case lost, o.Name == "Commit" && !sent:
						return recipes.ErrUnreachable
					case o.Name == "Commit":
						lost = true
						return recipes.ErrOutcomeUnknown
					}
					return nil
				})
				err := write(w.Context(), reader)
				if errors.Is(err, recipes.ErrOutcomeUnknown) != sent || !errors.Is(err, recipes.ErrUnreachable) {
					t.Errorf("%s, sent %v: %v", name, sent, err)
				}
			})
		}
	}
}

func TestASequenceAdvancesAndNeverGoesBack(t *testing.T) {
	inBubble(t, func(w world) {
		reader, made := w.made(1)
		for _, step := range []struct{ to, want int64 }{{50, 50}, {50, 50}, {3, 50}, {-1, 50}, {51, 51}, {math.MaxInt64, math.MaxInt64}} {
			count, err := invoices.AdvanceTo(w.Context(), reader, step.to)
			if err != nil || count.Last != step.want || count.Incarnation != made.Incarnation || w.stored() != step.want {
				t.Errorf("to %d: %+v, %v", step.to, count, err)
			}
		}
	})
}

func TestAnAdvanceThatIsOvertakenOrUnansweredGoesOn(t *testing.T) {
	for name, script := range map[string]func(*standin.Reader, world){
		"overtaken": func(r *standin.Reader, w world) {
			r.Before(once("Commit", func() error { _, err := w.next(w.NewReader(), 5); return err }))
		},
		"overtaken beyond": func(r *standin.Reader, w world) {
			r.Before(once("Commit", func() error { _, err := w.next(w.NewReader(), 1000); return err }))
		},
		"remade": func(r *standin.Reader, w world) { r.Before(once("Commit", w.remake)) },
		"done":   func(r *standin.Reader, _ world) { r.After(once("Commit", replyLost)) },
		"lost":   func(r *standin.Reader, _ world) { r.Before(once("Commit", replyLost)) },
	} {
		inBubble(t, func(w world) {
			reader, _ := w.made(1)
			script(reader, w)
			count, err := invoices.AdvanceTo(w.Context(), reader, 100)
			node, _ := w.Read(invoices.Path)
			if err != nil || count.Last != max(100, w.stored()) || count.Incarnation != node.Czxid {
				t.Errorf("%s: %+v, %v", name, count, err)
			}
		})
	}
}

// remake deletes the sequence and makes it again, beginning with 1.
func (w world) remake() error {
	reader := w.NewReader()
	if err := invoices.Delete(w.Context(), reader); err != nil {
		return err
	}
	_, err := invoices.Create(w.Context(), reader, 1)
	return err
}

func TestADeletedSequenceLeavesNothing(t *testing.T) {
	for name, script := range map[string]func(*standin.Reader, world){
		"plain": func(*standin.Reader, world) {},
		"done":  func(r *standin.Reader, _ world) { r.After(once("Commit", replyLost)) },
		"lost":  func(r *standin.Reader, _ world) { r.Before(once("Commit", replyLost)) },
		"another guard": func(r *standin.Reader, w world) {
			r.Before(once("Commit", func() error {
				_, err := w.Create(invoices.Path+"/_i_another", nil, embedded.Persistent, 0)
				return err
			}))
		},
		"overtaken": func(r *standin.Reader, w world) {
			r.Before(once("Commit", func() error { _, err := w.next(w.NewReader(), 5); return err }))
		},
	} {
		inBubble(t, func(w world) {
			reader, _ := w.made(1)
			script(reader, w)
			if err := invoices.Delete(w.Context(), reader); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if names := w.Names("/sequences"); len(names) != 0 {
				t.Errorf("%s: left %q", name, names)
			}
			if err := invoices.Delete(w.Context(), reader); !errors.Is(err, recipes.ErrNoSequence) {
				t.Errorf("%s, again: %v", name, err)
			}
		})
	}
}

func TestADeleteWithoutAReplyLeavesTheNextIncarnationAlone(t *testing.T) {
	for _, again := range []bool{true, false} {
		inBubble(t, func(w world) {
			reader, _ := w.made(1)
			reader.After(once("Commit", func() error {
				if again {
					_, _ = w.made(70)
				}
				return recipes.ErrOutcomeUnknown
			}))
			if err := invoices.Delete(w.Context(), reader); err != nil {
				t.Error(err)
			}
			if again && w.stored() != 69 {
				t.Errorf("stored: %d", w.stored())
			}
		})
	}
}

func TestASequenceWithThingsOfOthersIsNotDeleted(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		_, _ = w.Create(invoices.Path+"/theirs", nil, embedded.Persistent, 0)
		if err := invoices.Delete(w.Context(), reader); !errors.Is(err, recipes.ErrForeignChildren) {
			t.Error(err)
		}
		if numbers, err := w.next(reader, 1); err != nil || numbers.First != 1 {
			t.Errorf("next: %+v, %v", numbers, err)
		}
	})
}

func TestWhatOthersHaveStoredGoesOnOrIsRefused(t *testing.T) {
	tests := []struct {
		data  []byte
		mode  embedded.Mode
		child string
		want  string
	}{
		{data: eightBytes(41), want: "42"},
		{data: eightBytes(-3), want: "-2"},
		{data: nil, want: "1"},
		{data: []byte{}, want: "1"},
		{data: eightBytes(41), child: "theirs", want: "42"},
		{data: eightBytes(math.MaxInt64), want: recipes.ErrExhausted.Error()},
		{data: []byte("5"), want: recipes.ErrMalformed.Error()},
		{data: []byte("1234567"), want: recipes.ErrMalformed.Error()},
		{data: []byte("123456789"), want: recipes.ErrMalformed.Error()},
		{data: make([]byte, 4096), want: recipes.ErrMalformed.Error()},
		{data: []byte("12345679"), want: recipes.ErrMalformed.Error()},
		{data: []byte("-1234567"), want: recipes.ErrMalformed.Error()},
		{data: []byte("1.500001"), want: recipes.ErrMalformed.Error()},
		{data: []byte("1.25e+16"), want: recipes.ErrMalformed.Error()},
		{data: []byte("a string"), want: recipes.ErrMalformed.Error()},
		{data: []byte("12345679"), child: "theirs", want: recipes.ErrMalformed.Error()},
		{data: []byte("12345679"), child: "_i_ours", want: "3544952156018063162"},
		{data: []byte("1234567\n"), want: "3544952156018063115"},
		{data: nil, child: "theirs", want: recipes.ErrMalformed.Error()},
		{data: eightBytes(41), mode: embedded.Ephemeral, want: recipes.ErrMalformed.Error()},
	}
	for _, test := range tests {
		inBubble(t, func(w world) {
			w.put(test.data, test.mode)
			if test.child != "" {
				_, _ = w.Create(invoices.Path+"/"+test.child, nil, embedded.Persistent, 0)
			}
			numbers, err := w.next(w.NewReader(), 1)
			got := fmt.Sprint(numbers.First)
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%q and child %q: %s, want %s", test.data, test.child, got, test.want)
			}
			node, _ := w.Read(invoices.Path)
			if err != nil && (!bytes.Equal(node.Data, test.data) || node.Version != 0) {
				t.Errorf("%q: it was written to", test.data)
			}
			if errors.Is(err, recipes.ErrMalformed) && strings.Contains(fmt.Sprint(w.Names(invoices.Path)), "_i_") {
				t.Errorf("%q: it has got a guard", test.data)
			}
		})
	}
}

func TestNothingMalformedIsDeletedOrAdvanced(t *testing.T) {
	for _, text := range []string{"somebody's text", "12345679"} {
		inBubble(t, func(w world) {
			w.put([]byte(text), embedded.Persistent)
			reader := w.NewReader()
			if err := invoices.Delete(w.Context(), reader); !errors.Is(err, recipes.ErrMalformed) {
				t.Errorf("delete: %v", err)
			}
			if _, err := invoices.AdvanceTo(w.Context(), reader, math.MaxInt64); !errors.Is(err, recipes.ErrMalformed) {
				t.Errorf("advance: %v", err)
			}
			if count, err := invoices.Read(w.Context(), reader); !errors.Is(err, recipes.ErrMalformed) || count.Incarnation == 0 {
				t.Errorf("read: %+v, %v", count, err)
			}
			if node, err := w.Read(invoices.Path); err != nil || string(node.Data) != text || node.Version != 0 {
				t.Errorf("left: %q, %v", node.Data, err)
			}
		})
	}
}

func TestASequenceOfOursGoesAcrossNumbersThatLookLikeText(t *testing.T) {
	text := int64(binary.BigEndian.Uint64([]byte("12345679")))
	for name, reach := range map[string]func(world, recipes.Store) error{
		"first": func(w world, store recipes.Store) error {
			if err := invoices.Delete(w.Context(), store); err != nil {
				return err
			}
			_, err := invoices.Create(w.Context(), store, text+1)
			return err
		},
		"advanced": func(w world, store recipes.Store) error {
			_, err := invoices.AdvanceTo(w.Context(), store, text)
			return err
		},
	} {
		inBubble(t, func(w world) {
			reader, _ := w.made(1)
			if err := reach(w, reader); err != nil || w.stored() != text {
				t.Fatalf("%s: %v, stored %d", name, err, w.stored())
			}
			if count, err := invoices.Read(w.Context(), reader); err != nil || count.Last != text {
				t.Errorf("%s: read %+v, %v", name, count, err)
			}
			if numbers, err := w.next(reader, 2); err != nil || numbers.First != text+1 || w.stored() != text+2 {
				t.Errorf("%s: next %+v, %v", name, numbers, err)
			}
		})
	}
}

// A counter of text is empty at first. Whichever is first with its number, the other does not go on from it.
func TestACounterOfTextThatBeginsMeanwhileIsNotSpoiled(t *testing.T) {
	inBubble(t, func(w world) {
		w.put(nil, embedded.Persistent)
		reader := w.NewReader()
		reader.Before(once("Commit", func() error { return w.Set(invoices.Path, []byte("12345679")) }))
		if numbers, err := w.next(reader, 1); !errors.Is(err, recipes.ErrMalformed) || len(w.Names(invoices.Path)) > 0 {
			t.Errorf("begun before ours: %+v, %v, and children %q", numbers, err, w.Names(invoices.Path))
		}
	})
	inBubble(t, func(w world) {
		w.put(nil, embedded.Persistent)
		reader := w.NewReader()
		reader.After(once("Commit", func() error {
			if node, _ := w.Read(invoices.Path); node.Version == 0 || w.stored() != 0 {
				t.Errorf("ours, and %q at version %d, which a counter of text would go on from", node.Data, node.Version)
			}
			return nil
		}))
		if numbers, err := w.next(reader, 1); err != nil || numbers.First != 1 {
			t.Errorf("ours: %+v, %v", numbers, err)
		}
	})
}

func TestASequenceThatIsMissingIsSaidToBe(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		_, next := w.next(reader, 1)
		_, read := invoices.Read(w.Context(), reader)
		_, advance := invoices.AdvanceTo(w.Context(), reader, 1)
		for _, err := range []error{next, read, advance, invoices.Delete(w.Context(), reader)} {
			if !errors.Is(err, recipes.ErrNoSequence) {
				t.Error(err)
			}
		}
		if names := w.Names("/"); len(names) != 1 {
			t.Errorf("left: %q", names)
		}
	})
}

// The server that a sidecar reads from may not have heard of a sequence yet, or still show an older one.
func TestBadNewsIsBelievedFromATreeThatHasCaughtUp(t *testing.T) {
	for name, before := range map[string]func(world){
		"missing":   func(world) {},
		"malformed": func(w world) { w.put([]byte("text"), embedded.Persistent) },
		"exhausted": func(w world) { w.put(eightBytes(math.MaxInt64), embedded.Persistent) },
	} {
		inBubble(t, func(w world) {
			before(w)
			late := w.NewReader()
			late.Lag()
			_ = w.Delete(invoices.Path)
			w.made(1)
			if numbers, err := w.next(late, 3); err != nil || numbers.Last != 3 {
				t.Errorf("%s: %+v, %v", name, numbers, err)
			}
		})
	}
}

// Versions have 32 bits, and −1 in a request means any. Some servers step over it and some do not.
func TestNumbersGoOnAcrossTheEndOfVersions(t *testing.T) {
	for _, version := range []int32{math.MaxInt32, -4, -3, -2} {
		inBubble(t, func(w world) {
			reader, _ := w.made(1)
			if err := w.SetVersion(invoices.Path, version); err != nil {
				t.Fatal(err)
			}
			issuer := recipes.NewIssuer(invoices, reader)
			for last := int64(10); last <= 40; last += 10 {
				numbers, err := issuer.Next(w.Context(), 10)
				if err != nil || numbers.Last != last || w.stored() != last {
					t.Errorf("from %d: %+v, %v", version, numbers, err)
				}
			}
		})
	}
}

func TestASequenceThatOthersLeftAtAVersionThatMeansAnyIsRefused(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		_ = w.SetVersion(invoices.Path, -1)
		if _, err := w.next(reader, 1); !errors.Is(err, recipes.ErrMalformed) || w.stored() != 0 {
			t.Errorf("%v, stored %d", err, w.stored())
		}
	})
}

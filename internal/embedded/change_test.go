package embedded_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

var errRefused = errors.New("refused")

func TestEachChangeIsToldAsItIsMadeAndWhatIsRefusedIsNot(t *testing.T) {
	var told []embedded.Change
	e := embedded.New(embedded.Options{Committed: func(c embedded.Change) { told = append(told, c) }})
	e.Mutex().Lock()
	session, timeout := e.StartSession(5*time.Second, func(error) {})
	creating := func(path string, mode embedded.Mode, err error) func(*embedded.Transaction) error {
		return func(t *embedded.Transaction) error {
			_, _, failed := t.Make(path, nil, mode)
			return errors.Join(failed, err)
		}
	}
	for _, change := range []func(*embedded.Transaction) error{
		creating("/locks", embedded.Persistent, nil),
		creating("/locks/refused", embedded.Ephemeral, errRefused),
		creating("/locks/a", embedded.Ephemeral, nil),
		creating("/locks/b", embedded.Ephemeral, nil),
		func(t *embedded.Transaction) error { return t.Delete("/locks/a", -1) },
		func(t *embedded.Transaction) error {
			_, err := t.Set("/locks/b", nil, -1)
			return err
		},
	} {
		_ = e.Write(session, change) // one of them is refused
	}
	e.Mutex().Unlock()
	if err := errors.Join(e.Condemn(session), e.Expire(session)); err != nil {
		t.Fatal(err)
	}
	e.Close()
	want := []embedded.Change{
		{Zxid: 1, Session: session, Timeout: timeout},
		{Zxid: 2, Session: session, Made: []embedded.Owned{{Path: "/locks"}}},
		{Zxid: 4, Session: session, Made: []embedded.Owned{{Path: "/locks/a", Owner: session}}},
		{Zxid: 5, Session: session, Made: []embedded.Owned{{Path: "/locks/b", Owner: session}}},
		{Zxid: 6, Session: session, Gone: []embedded.Owned{{Path: "/locks/a", Owner: session}}},
		{Zxid: 7, Session: session, Set: []string{"/locks/b"}},
		{Zxid: 7, Session: session, Condemned: true},
		{Zxid: 8, Session: session, Ended: true, Gone: []embedded.Owned{{Path: "/locks/b", Owner: session}}},
		{Closed: true},
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

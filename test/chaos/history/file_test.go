package history

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// without is the events of other kinds.
func without(kind Kind, events []Event) (others []Event) {
	return slices.DeleteFunc(events, func(event Event) bool { return event.Kind == kind })
}

func TestAHistoryIsReadBackInTheOrderOfTimes(t *testing.T) {
	directory := t.TempDir()
	demand := int32(-1)
	written := []Event{
		{At: 10, Client: 1, Op: 1, Kind: Called, Lock: "a", Mode: Exclusive, Sidecar: 2},
		{At: 20, Client: 2, Kind: Began, Nemesis: "N1", Settings: &Settings{Seed: 7, Patience: time.Second, Spares: true}},
		{At: 30, Client: 1, Caller: 4, Op: 1, Kind: Believed, From: 25, To: 29},
		{At: 40, Client: 2, Kind: Invoked, Steps: []Step{{Key: "k", Verb: Put, Value: "v", Demand: &demand}}},
	}
	for client := 1; client <= 2; client++ {
		w, err := Create(directory, client)
		must(t, err)
		for _, event := range written {
			if event.Client == client {
				event.Client = 99 // the writer knows better
				w.Append(event)
			}
		}
		must(t, w.Close())
	}
	read, err := ReadDirectory(directory)
	must(t, err)
	if different := cmp.Diff(written, without(Clocks, read)); different != "" {
		t.Error(different)
	}
}

func TestALastLineThatWasNotFinishedIsLeftOut(t *testing.T) {
	directory := t.TempDir()
	w, err := Create(directory, 1)
	must(t, err)
	w.Append(Event{At: 1, Kind: Quiet})
	file := filepath.Join(directory, "00001.history")
	whole, err := os.ReadFile(file)
	must(t, err)
	must(t, w.Close())
	for cut := 1; cut < len(`{"at":1,"client":1,"kind":"quiet"}`); cut++ {
		must(t, os.WriteFile(file, whole[:len(whole)-cut], 0o644))
		events, err := ReadDirectory(directory)
		must(t, err)
		if len(events) != 1 || events[0].Kind != Clocks {
			t.Errorf("with %d bytes missing: %+v", cut, events)
		}
	}
}

func TestALineThatMakesNoSenseIsRefused(t *testing.T) {
	for _, line := range []string{"{", `{"at":"soon"}`, `{"kind":"quiet","colour":"red"}`, `{"steps":[{"key":1}]}`} {
		directory := t.TempDir()
		must(t, os.WriteFile(filepath.Join(directory, "00001.history"), []byte(line+"\n"), 0o644))
		if events, err := ReadDirectory(directory); err == nil {
			t.Errorf("%s is read as %+v", line, events)
		}
	}
}

func TestEventsOfManyCallersStandInTheOrderInWhichTheyGotTheirTimes(t *testing.T) {
	directory := t.TempDir()
	w, err := Create(directory, 3)
	must(t, err)
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for op := range 100 {
				w.Append(Event{Kind: Called, Caller: caller, Op: int64(op)})
			}
		})
	}
	callers.Wait()
	must(t, w.Close())
	events, err := readFile(filepath.Join(directory, "00003.history"))
	must(t, err)
	if len(events) != 802 {
		t.Errorf("%d events", len(events))
	}
	for i := 1; i < len(events); i++ {
		if events[i].At < events[i-1].At && events[i].Kind == Called {
			t.Fatalf("%+v after %+v", events[i], events[i-1])
		}
	}
}

func TestAProcessHasOneFile(t *testing.T) {
	directory := t.TempDir()
	w, err := Create(directory, 1)
	must(t, err)
	defer w.Close()
	if _, err := Create(directory, 1); err == nil {
		t.Error("a second writer for the same process")
	}
}

func TestWhatCouldNotBeWrittenIsTold(t *testing.T) {
	w, err := Create(t.TempDir(), 1)
	must(t, err)
	must(t, w.file.Close())
	w.Append(Event{Kind: Quiet})
	if w.Close() == nil {
		t.Error("nothing told")
	}
}

func TestOnlyReadersShareALock(t *testing.T) {
	for _, pair := range []struct {
		one, other Mode
		want       bool
	}{
		{Exclusive, Exclusive, true},
		{Write, Write, true},
		{Write, Read, true},
		{Read, Write, true},
		{Read, Read, false},
	} {
		if got := pair.one.Excludes(pair.other); got != pair.want {
			t.Errorf("%s excludes %s: %v", pair.one, pair.other, got)
		}
	}
}

package recipes_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// The record is made anew while a sweep waits, with the version that the sweep has seen.
func TestASweepRemovesNoRecordThatWasMadeAnew(t *testing.T) {
	inBubble(t, func(w world) {
		old := w.holds(tonight)
		old.begins()
		old.finishes(recipes.Succeeded)
		time.Sleep(keep + time.Minute)
		elsewhere := tonight
		elsewhere.Key, elsewhere.PerKey = "elsewhere", true
		late, other, arrives := w.holds(elsewhere), tonight, make(chan struct{})
		other.Key, other.PerKey = "other", true
		stalled := false
		late.reader.Before(func(of standin.Operation) error {
			if of.Name == "Commit" && !stalled {
				stalled = true
				<-arrives
			}
			return nil
		})
		sweep := func(a *attempt) int {
			removed, err := nightly.Sweep(w.living, a.reader, a.hold, recipes.About{})
			if err != nil {
				t.Error(err)
			}
			return removed
		}
		answer := make(chan int, 1)
		go func() { answer <- sweep(late) }()
		synctest.Wait()
		if removed := sweep(w.holds(other)); removed != 1 {
			t.Errorf("the first sweep removes %d", removed)
		}
		fresh := w.holds(tonight)
		w.told("anew", fresh.begins(), "begun 1")
		w.told("finish", fresh.finishes(recipes.Succeeded), "ok")
		close(arrives)
		if removed := <-answer; removed != 0 {
			t.Errorf("the late sweep removes %d", removed)
		}
		w.told("record", w.shown("tonight"), "SUCCEEDED 1 ann a note")
	})
}

func TestANameHasSoManyRecordsAndThoseWhoseTimeIsOverMakeRoom(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.holds(tonight)
		first.begins()
		data, _ := w.Read(nightly.Path + "/tonight")
		for i := range recipes.MaxKeys - 1 {
			if _, err := w.NewReader().Commit(w.living, recipes.Create(fmt.Sprint(nightly.Path, "/", i), data.Data)); err != nil {
				t.Fatal(err)
			}
		}
		first.finishes(recipes.Succeeded)
		more := tonight
		more.Key = "more"
		second := w.holds(more)
		w.told("one more", second.begins(), "too many")
		w.told("one that is there", first.finishesUnder(second, recipes.Succeeded), "ok")
		for i := range recipes.MaxKeys - 1 {
			if err := w.Delete(fmt.Sprint(nightly.Path, "/", i)); err != nil {
				t.Fatal(err)
			}
		}
		sweep := func() int {
			removed, err := nightly.Sweep(w.living, second.session, second.hold, recipes.About{})
			if err != nil {
				t.Fatal(err)
			}
			return removed
		}
		if removed := sweep(); removed != 0 {
			t.Errorf("%d removed whose time was not over", removed)
		}
		w.told("with room", second.begins(), "begun 1")
		perKey := tonight
		perKey.Key, perKey.PerKey = "own", true
		own := w.holds(perKey)
		own.begins()
		own.finishes(recipes.Succeeded)
		time.Sleep(keep + time.Minute)
		if removed := sweep(); removed != 2 || w.shown("tonight") != "none" || w.shown("own") != "none" || w.shown("more") != "BEGUN 1 ann " {
			t.Errorf("%d removed: %s, %s, %s", removed, w.shown("tonight"), w.shown("own"), w.shown("more"))
		}
	})
}

func TestARecordOfAnotherProgramIsNeitherBegunNorSwept(t *testing.T) {
	inBubble(t, func(w world) {
		store := w.NewReader()
		if err := store.MakeDirectory(w.living, nightly.Path); err != nil {
			t.Fatal(err)
		}
		const place = "/locks/_c_00000000-0000-0000-0000-000000000000-lock-0000000001"
		for _, data := range []string{
			"", "null", `{"outcome":"FAILED"}`, `{"outcome":"DONE","attempt":1,"token":1,"place":"` + place + `"}`,
			`{"outcome":"FAILED","attempt":0,"token":1,"place":"` + place + `"}`, `{"outcome":"FAILED","attempt":1,"token":1,"place":"/"}`,
			`{"outcome":"FAILED","attempt":1,"token":1,"place":"/x/` + place + `"}`, `{"outcome":"FAILED","attempt":1,"token":1,"place":"x"}`,
			`{"outcome":"FAILED","attempt":1,"token":1,"keep_ns":-1,"place":"` + place + `"}`,
			`{"outcome":"FAILED","attempt":2147483648,"token":1,"place":"` + place + `"}`,
			`{"outcome":"FAILED","attempt":1,"token":1,"place":"/a\u0000` + place + `"}`,
			`{"outcome":"BEGUN","attempt":1,"token":1,"place":"/\ud83d\ude00` + place + `"}`,
		} {
			if _, err := store.Commit(w.living, recipes.Create(nightly.Path+"/tonight", []byte(data))); err != nil {
				t.Fatal(err)
			}
			a := w.holds(tonight)
			w.told(data, a.begins(), "malformed")
			if removed, err := nightly.Sweep(w.living, store, a.hold, recipes.About{}); removed != 0 || err != nil {
				t.Errorf("%s: %d removed, %v", data, removed, err)
			}
			w.told(data, word(nightly.Forget(w.living, store, recipes.Record{Key: "tonight"}, a.hold)), "ok")
			a.quit()
		}
	})
}

// A caller waits for a sweep before it is told `begun`.
func TestASweepRemovesFewRecordsAtATime(t *testing.T) {
	inBubble(t, func(w world) {
		old := w.holds(tonight)
		old.begins()
		old.finishes(recipes.Succeeded)
		data, _ := w.Read(nightly.Path + "/tonight")
		const more = 40
		for i := range more {
			if _, err := w.NewReader().Commit(w.living, recipes.Create(fmt.Sprint(nightly.Path, "/", i), data.Data)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(keep + time.Minute)
		own := w.holds(tonight)
		for left := more + 1; left > 0; {
			removed, err := nightly.Sweep(w.living, own.reader, own.hold, recipes.About{})
			if err != nil || removed == 0 || removed > 4 {
				t.Fatalf("%d removed of %d, %v", removed, left, err)
			}
			left -= removed
		}
	})
}

// A sidecar that is started again gives a caller the nodes of its request: a place of a sweep is none of them.
func TestAPlaceOfASweepIsNotThatOfTheRequestThatHasMadeIt(t *testing.T) {
	inBubble(t, func(w world) {
		perKey := tonight
		perKey.Key, perKey.PerKey = "own", true
		own := w.holds(perKey)
		own.begins()
		own.finishes(recipes.Succeeded)
		time.Sleep(keep + time.Minute)
		sweeper, places := w.holds(tonight), 0
		sweeper.reader.Before(func(of standin.Operation) error {
			for _, name := range w.Names("/locks/nightly%2Fown") {
				node, err := w.Read("/locks/nightly%2Fown/" + name)
				if err == nil && strings.Contains(name, "lock") {
					places++
					if request := recipes.RequestIn(node); request != 0 {
						t.Errorf("the place is that of the request %d", request)
					}
				}
			}
			return nil
		})
		removed, err := nightly.Sweep(w.living, sweeper.reader, sweeper.hold, recipes.About{Request: 7})
		if removed != 1 || err != nil || places == 0 {
			t.Errorf("%d removed, %v, with %d places seen", removed, err, places)
		}
	})
}

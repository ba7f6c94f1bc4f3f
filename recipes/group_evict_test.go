package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestAMemberThatAttendsGoesWhenItIsAsked(t *testing.T) {
	inBubble(t, func(w world) {
		m := w.enlist("a")
		w.attend(m)
		began := time.Now()
		w.wantEviction(w.evict("a"), "gone, forced false")
		if took := time.Since(began); took != 0 {
			w.Errorf("it took %v", took)
		}
		w.wantInside("")
	})
}

func TestAMemberThatDoesNotAttendIsRemovedWhenItsTimeIsOver(t *testing.T) {
	inBubble(t, func(w world) {
		m := w.enlist("a")
		o := w.evict("a")
		<-time.After(forceAfter - time.Millisecond)
		w.wantEviction(o, "waiting")
		w.wantInside("a")
		<-time.After(time.Millisecond)
		w.wantEviction(o, "gone, forced true")
		w.wantInside("")
		if got := w.stands(m); got != "removed by hand" {
			w.Errorf("it sees %s", got)
		}
	})
}

func TestAForeignMemberIsNotWrittenTo(t *testing.T) {
	inBubble(t, func(w world) {
		path, _ := w.foreignMember("a", `{"theirs":true}`)
		o := w.evict("a")
		<-time.After(forceAfter / 2)
		node, err := w.Read(path)
		if err != nil || string(node.Data) != `{"theirs":true}` || node.Version != 0 {
			w.Errorf("it has %q version %d, %v", node.Data, node.Version, err)
		}
		<-time.After(forceAfter / 2)
		w.wantEviction(o, "gone, forced true")
	})
}

func TestWhoeverJoinsInTheMeantimeIsLetBe(t *testing.T) {
	for _, c := range []struct {
		name string
		join func(w world)
	}{
		{"ours", func(w world) { w.enlist("a") }},
		{"not ours", func(w world) { w.foreignMember("a", "") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				m := w.enlist("a")
				reader := w.NewReader()
				o := w.evictThrough(w.living, reader, "a")
				reader.Lag()
				m.session.Expire()
				c.join(w)
				w.wantEviction(o, "waiting")
				<-time.After(forceAfter)
				w.wantEviction(o, "gone, forced false")
				w.wantInside("a")
			})
		})
	}
}

func TestAnUpdateDoesNotMakeAMemberDeaf(t *testing.T) {
	inBubble(t, func(w world) {
		m := w.enlist("a")
		o := w.evict("a")
		if err := m.Update(w.living, map[string]string{"port": "2"}); err != nil {
			w.Fatal(err)
		}
		w.wantEviction(o, "waiting")
		if got := w.stands(m); got != "replaced by uid:7: restarted" {
			w.Errorf("it sees %s", got)
		}
		w.attend(m)
		w.wantEviction(o, "gone, forced false")
	})
}

func TestAnUpdateJustBeforeTheMarkIsKept(t *testing.T) {
	inBubble(t, func(w world) {
		m := w.enlist("a")
		reader := w.NewReader()
		reader.Before(func(operation standin.Operation) error {
			if operation.Name == "Commit" {
				reader.Before(nil)
				return m.Update(w.living, map[string]string{"port": "2"})
			}
			return nil
		})
		w.evictThrough(w.living, reader, "a")
		node, err := w.Read(shop.Path + "/a")
		want := `{"sidekeeper":1,"owner":"of a","metadata":{"port":"2"},"end":{"replaced":true,"by":"uid:7","reason":"restarted"}}`
		if err != nil || string(node.Data) != want {
			w.Errorf("it has %s, %v", node.Data, err)
		}
	})
}

// lose has the first reply to a request of this name be lost.
func lose(reader *standin.Reader, name string) {
	reader.After(func(operation standin.Operation) error {
		if operation.Name != name {
			return nil
		}
		reader.After(nil)
		return recipes.ErrOutcomeUnknown
	})
}

func TestALostReplyIsFoundOut(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		w.attend(w.enlist("a"))
		lose(reader, "Commit")
		w.wantEviction(w.evictThrough(w.living, reader, "a"), "gone, forced false")

		w.enlist("a")
		o := w.evictThrough(w.living, reader, "a")
		lose(reader, "Commit")
		<-time.After(forceAfter)
		w.wantEviction(o, "gone, forced true")
	})
}

func TestAMemberThatIsNotThereNeedNotBeEvicted(t *testing.T) {
	inBubble(t, func(w world) { w.wantEviction(w.evict("a"), "gone, forced false") })
}

func TestAnEvictionCanBeGivenUp(t *testing.T) {
	inBubble(t, func(w world) {
		w.enlist("a")
		ctx, cancel := context.WithTimeoutCause(w.living, time.Second, errBroken)
		defer cancel()
		o := w.evictThrough(ctx, w.NewReader(), "a")
		<-time.After(time.Second)
		w.wantEviction(o, "broken")
		w.wantInside("a")
	})
}

func TestAnEvictionThatIsDeniedSaysSo(t *testing.T) {
	inBubble(t, func(w world) {
		w.enlist("a")
		reader := w.NewReader()
		reader.Before(func(operation standin.Operation) error {
			if operation.Name == "Commit" {
				return recipes.ErrDenied
			}
			return nil
		})
		w.wantEviction(w.evictThrough(w.living, reader, "a"), recipes.ErrDenied.Error())
	})
}

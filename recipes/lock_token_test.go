package recipes_test

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A fencing token orders grants, so that it must not move when somebody asks for the lock: whoever waits has a larger one.
func TestATokenIsThatOfThePlaceWhoeverWritesToItsNode(t *testing.T) {
	inBubble(t, func(w world) {
		holder, next, last := w.join(recipes.Exclusive), w.join(recipes.Exclusive), w.join(recipes.Exclusive)
		path := w.pathOf(next)
		made, err := w.Read(path)
		if err != nil {
			w.Fatal(err)
		}
		if err := w.Set(path, []byte("unlock")); err != nil {
			w.Fatal(err)
		}
		holder.quit()
		w.expect("asked", next)
		if next.hold.Token != made.Czxid {
			w.Errorf("the token of the place made by %d is %d", made.Czxid, next.hold.Token)
		}
		next.quit()
		w.expect("holding", last)
		if last.hold.Token <= next.hold.Token {
			w.Errorf("token %d after %d", last.hold.Token, next.hold.Token)
		}
	})
}

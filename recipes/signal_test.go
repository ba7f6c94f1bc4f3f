package recipes

import (
	"fmt"
	"testing"
)

// What follows a signal is dropped from anywhere among others, and alone.
func TestWhatFollowsASignalIsDroppedAlone(t *testing.T) {
	t.Parallel()
	for _, dropped := range [][]int{{}, {0}, {1}, {2}, {0, 1}, {2, 1}, {1, 0, 2}, {1, 1}} {
		t.Run(fmt.Sprint(dropped), func(t *testing.T) {
			t.Parallel()
			var s Signal
			followed, left := make(chan int, 3), map[int]bool{0: true, 1: true, 2: true}
			sequels := make([]*Sequel, 3)
			for i := range sequels {
				sequels[i] = s.Then(func() { followed <- i })
			}
			for _, i := range dropped {
				sequels[i].Drop()
				delete(left, i)
			}
			s.Give()
			for range len(left) {
				i := <-followed
				if !left[i] {
					t.Errorf("%d follows", i)
				}
				delete(left, i)
			}
			for _, sequel := range sequels {
				sequel.Drop() // after the signal was given
			}
			done := make(chan struct{})
			if s.Then(func() { close(done) }) != nil {
				t.Error("what follows at once can be dropped")
			}
			<-done
		})
	}
}

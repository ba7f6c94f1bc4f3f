package recipes_test

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// disturb has writes wait on their way for up to a time, loses some of them and of the replies, and has readers lag.
func disturb(dice *rand.Rand, late time.Duration, readers ...*standin.Reader) {
	var mu sync.Mutex
	throw := func(sides int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(sides)
	}
	for _, reader := range readers {
		reader.Before(func(of standin.Operation) error {
			switch {
			case of.Name == "Commit" && throw(5) == 0:
				time.Sleep(time.Duration(throw(int(late))))
			case of.Name == "Commit" && throw(8) == 0:
				return recipes.ErrOutcomeUnknown
			case throw(20) == 0:
				reader.Lag()
			case throw(5) == 0:
				reader.KeepUp()
			}
			return nil
		})
		reader.After(func(of standin.Operation) error {
			if of.Name == "Commit" && throw(6) == 0 {
				return recipes.ErrOutcomeUnknown
			}
			return nil
		})
	}
}

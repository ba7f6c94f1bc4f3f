//go:build sleeper

package recipes

import (
	"os"
	"sync"
	"time"
)

// wallAhead names the variable that says by how much this machine's clock is ahead, as in "1h" or "-1h". No test can set a clock for one
// program. A program that is built with the tag `sleeper` is for tests alone.
const wallAhead = "SIDEKEEPER_TEST_WALL_AHEAD"

var ahead = sync.OnceValue(func() time.Duration {
	text := os.Getenv(wallAhead)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(wallAhead + ": " + err.Error())
	}
	return d
})

func wall() time.Time { return time.Now().Add(ahead()) }

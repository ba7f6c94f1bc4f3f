package recipes

import (
	"testing"
	"time"
)

func TestWhatANodeTellsOfTheLongestTimeoutIsBelieved(t *testing.T) {
	for _, c := range []struct{ told, want time.Duration }{
		{20 * time.Minute, 20 * time.Minute},
		{24 * time.Hour, 24 * time.Hour}, // the longest ttl, and the longest --session-timeout
		{25 * time.Hour, LongestTimeout},
		{-time.Hour, 0},
	} {
		if got := toldTimeout(c.told.Milliseconds()); got != c.want {
			t.Errorf("told of %v, it believes in %v", c.told, got)
		}
	}
}

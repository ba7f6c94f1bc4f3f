//go:build race && !go1.27

package bubble

import (
	"runtime"
	"sync"
)

// processors counts the bubbles that there are, and knows how many processors there were before the first of them.
var processors struct {
	sync.Mutex
	bubbles, before int
}

// enter leaves the process one processor until the last of the bubbles has come back from the function it returns.
//
// Before Go 1.27 all timers of a bubble share one context of the race detector. Two of them that fire on two
// processors at once write into it together, and the process ends with SIGSEGV or "ThreadSanitizer: CHECK failed"
// (https://github.com/golang/go/issues/78156).
func enter() (leave func()) {
	processors.Lock()
	defer processors.Unlock()
	if processors.bubbles == 0 {
		processors.before = runtime.GOMAXPROCS(1)
	}
	processors.bubbles++
	return func() {
		processors.Lock()
		defer processors.Unlock()
		if processors.bubbles--; processors.bubbles == 0 {
			runtime.GOMAXPROCS(processors.before)
		}
	}
}

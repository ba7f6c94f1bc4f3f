package bubble_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// With synctest.Test in place of bubble.Test this ends the process within a second: see one_processor.go.
func TestTimersThatFireTogetherDoNotEndTheProcess(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for range 200 {
		bubble.Test(t, func(*testing.T) {
			var waiting sync.WaitGroup
			for range 8 {
				waiting.Go(fireTogether)
			}
			waiting.Wait()
		})
	}
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("the process had %d processors, and has %d", before, after)
	}
}

// fireTogether lets timers fire at one time: those somebody waits for, by the bubble; the others, by whoever looks.
func fireTogether() {
	for range 20 {
		awaited, looked := time.NewTimer(time.Millisecond), time.NewTimer(time.Millisecond)
		time.AfterFunc(time.Millisecond, func() {})
		<-awaited.C
		select {
		case <-looked.C:
		default:
		}
		select {
		case <-time.After(0):
		case <-time.After(1):
		}
	}
}

func TestBubblesSideBySideLeaveTheProcessItsProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Run("both", func(t *testing.T) {
		for _, long := range []time.Duration{time.Second, time.Hour} {
			t.Run(long.String(), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(*testing.T) {
					time.Sleep(long)
					synctest.Wait()
				})
			})
		}
	})
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("the process had %d processors, and has %d", before, after)
	}
}

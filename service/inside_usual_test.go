// It looks inside: how long a lock is usually held is a sum over more locks than a test can hold.

package service

import (
	"fmt"
	"testing"
	"time"
)

func TestAnExplanationSaysHowLongALockIsUsuallyHeld(t *testing.T) {
	t.Parallel()
	var usual usualHold
	if usual.of("orders") != nil {
		t.Error("it is known before any hold")
	}
	for held := range 2 * usualHolds {
		usual.note("orders", time.Duration(held)*time.Second)
	}
	of := usual.of("orders")
	same(t, "usual hold", fmt.Sprint(of.GetHolds(), of.GetMedian().AsDuration(), of.GetLongest().AsDuration()), "64 1m35s 2m7s")
	for other := range 2 * usualLocks {
		usual.note(fmt.Sprint(other), time.Second)
	}
	same(t, "locks remembered", len(usual.locks), usualLocks)
}

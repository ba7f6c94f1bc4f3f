package recipes

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func TestAChangeThatTookLongDoesNotSlowThoseAfterIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := backoff{}
		for range 10 {
			p.won(time.Millisecond)
		}
		p.lost(10 * time.Second) // the ensemble was away
		p.won(10 * time.Second)
		if stood := time.Until(p.next); stood <= 0 || stood > 3*time.Millisecond {
			t.Errorf("it stands back for %v", stood)
		}
		if err := p.await(t.Context()); err != nil {
			t.Error(err)
		}
		for range 100 {
			p.won(10 * time.Millisecond)
		}
		if stood := time.Until(p.next); stood < 5*time.Millisecond {
			t.Errorf("it stands back for %v though changes have become slow", stood)
		}
		time.Sleep(contentionLasts)
		p.won(10 * time.Millisecond)
		if time.Until(p.next) > 0 {
			t.Error("it stands back though nobody else was seen lately")
		}
	})
}

func TestWhoeverIsOvertakenOftenTriesAgainSooner(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := backoff{}
		p.won(100 * time.Millisecond)
		for range 20 {
			p.lost(100 * time.Millisecond)
		}
		if pause := time.Until(p.next); pause > 10*time.Millisecond {
			t.Errorf("it pauses for %v", pause)
		}
	})
}

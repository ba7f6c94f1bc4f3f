package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func TestAnExplanationNamesEachLockAndWhoWaitsInACircle(t *testing.T) {
	t.Parallel()
	suspended := true
	party := func(owner, lease string, waitsFor ...string) *sidekeeper.Party {
		return &sidekeeper.Party{
			Contender: &sidekeeper.Contender{Owner: owner, Age: 12 * time.Second}, Lease: lease, WaitsFor: waitsFor, Suspended: &suspended,
		}
	}
	explained := &sidekeeper.Explanation{
		Locks: []*sidekeeper.ExplainedLock{{
			Name: "orders", Holders: []*sidekeeper.Party{party("billing", "0123abcd", "stock")}, WaitersOmitted: 2,
			Waiters:   []*sidekeeper.Party{{Contender: &sidekeeper.Contender{Foreign: true, Age: time.Second}}},
			UsualHold: &sidekeeper.UsualHold{Holds: 3, Median: time.Second, Longest: time.Minute},
		}, {Name: "stock"}},
		Cycles: [][]*sidekeeper.Link{{
			{Owner: "billing", Lease: "0123abcd", WaitsFor: "stock"},
			{Lease: "89ef0123", WaitsFor: "orders"},
			{Owner: "billing (lease 0123abcd)", Lease: "7", WaitsFor: "rent"},
		}},
		Incomplete: true,
	}
	var shown bytes.Buffer
	if err := (&reach{}).showExplanation(&shown, explained); err != nil {
		t.Fatal(err)
	}
	want := `LOCK    STATE    LEASE     OWNER    IDENTITY  AGE  WAITS-FOR  NOTES
orders  held     0123abcd  billing  -         12s  stock      usually held for 1s, at most 1m0s, suspended
orders  waiting  -         -        -         1s   -          not Sidekeeper's
orders  waiting  -         -        -         -    -          2 more
stock   free     -         -        -         -    -
circle: billing (lease 0123abcd) waits for stock, lease 89ef0123 waits for orders, "billing (lease 0123abcd)" (lease 7) waits for rent
there is more than is shown
`
	if shown.String() != want {
		t.Errorf("got\n%s\nwant\n%s", shown.String(), want)
	}
	shown.Reset()
	explained.Cycles = nil
	if err := (&reach{}).showExplanation(&shown, explained); err != nil || !strings.Contains(shown.String(), "\nno circle is seen: ") {
		t.Errorf("%v: it does not say what it does not know:\n%s", err, shown.String())
	}
	shown.Reset()
	explained.Locks = explained.Locks[1:]
	if err := (&reach{}).showExplanation(&shown, explained); err != nil || strings.Contains(shown.String(), "circle") {
		t.Errorf("%v: it speaks of circles though no caller waits:\n%s", err, shown.String())
	}
}

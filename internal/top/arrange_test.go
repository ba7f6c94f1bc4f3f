package top

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/service"
)

// arranged are the owners of leases and the names of locks, after these keys.
func arranged(pressed ...string) string {
	state := &service.State{
		Leases: []service.LeaseState{{Owner: "web", ValidFor: 9}, {Owner: "Batch", ValidFor: 12}, {Owner: "shop", ValidFor: 3}},
		Locks: []service.LockState{
			{Name: "orders", Waiters: []service.Party{{Owner: "shop"}}},
			{Name: "invoices", Holders: []service.Party{{Owner: "batch", For: 60}}},
			{Name: "stock", Holders: []service.Party{{Owner: "web", For: 90}}},
		},
	}
	var by arrangement
	for _, typed := range pressed {
		by, _ = by.press(typed)
	}
	var words []string
	for _, lease := range by.of(state).Leases {
		words = append(words, lease.Owner)
	}
	words = append(words, "|")
	for _, lock := range by.of(state).Locks {
		words = append(words, lock.Name)
	}
	return strings.Join(append(words, "|", by.words()), " ")
}

func TestTopSortsAndFilters(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"", "web Batch shop | orders invoices stock | "},
		{"s", "Batch shop web | invoices orders stock | sorted by name"},
		{"s s", "shop web Batch | stock invoices orders | sorted by time"},
		{"s s s", "web Batch shop | orders invoices stock | "},
		{"/ b a t", "Batch | invoices | filter: bat_"},
		{"/ S H O P \r s", "shop | orders | sorted by name   filter: SHOP"},
		{"/ x", "| | filter: x_"},
		{"/ x \x7f w", "web | stock | filter: w_"},
		{"/ \x7f", "web Batch shop | orders invoices stock | filter: _"},
		{"/ w \r \x1b", "web Batch shop | orders invoices stock | "},
		{"/ \x1b[A w", "web | stock | filter: w_"},
	} {
		if got := arranged(strings.Split(c.keys, " ")...); got != c.want {
			t.Errorf("%q: got %q, want %q", c.keys, got, c.want)
		}
	}
}

func TestCtrlCEndsTopAlsoWhileAFilterIsTyped(t *testing.T) {
	s := &screen{}
	for _, typed := range []string{"/", "q"} {
		if !s.press(typed) {
			t.Errorf("%q ends it", typed)
		}
	}
	if s.press("\x03") {
		t.Error("Ctrl-C does not end it")
	}
}

func TestAFilterHidesHowManyRowsWereNotSent(t *testing.T) {
	v := newView(&service.State{Counts: service.Counts{Leases: 500}, Leases: []service.LeaseState{{Owner: "web"}}}, 100)
	for filter, want := range map[string]bool{"": true, "w": false} {
		v.arrangement.filter = filter
		if got := strings.Contains(fmt.Sprint(v.lines(40)), "and 499 more"); got != want {
			t.Errorf("with %q: %v", filter, got)
		}
	}
}

package top

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/service"
)

// An order is how the rows of leases, locks and members are sorted.
type order int

const (
	asSent order = iota // suspended leases, then the oldest; locks with the most waiters
	byName              // of owners, locks and members
	byTime              // leases with the least validity left; the longest holds and memberships
	orders              // how many there are
)

var orderWords = map[order]string{byName: "by name", byTime: "by time"}

// An arrangement is which rows a person wants to see, and in which order.
type arrangement struct {
	order  order
	filter string // what a row of leases, locks or members must contain, in whatever case
	typing bool   // whether keys go to the filter
}

// press is the arrangement after a key, and whether that key is for it.
func (a arrangement) press(typed string) (changed arrangement, is bool) {
	switch {
	case !a.typing && typed == "s":
		a.order = (a.order + 1) % orders
	case !a.typing && typed == "/":
		a.typing, a.filter = true, ""
	case typed == "\x1b" && (a.typing || a.filter != ""):
		a.typing, a.filter = false, ""
	case !a.typing || typed == "\x03": // Ctrl-C
		return a, false
	case typed == "\r", typed == "\n":
		a.typing = false
	case typed == "\x7f", typed == "\b":
		_, size := utf8.DecodeLastRuneInString(a.filter)
		a.filter = a.filter[:len(a.filter)-size]
	case show.Printable(typed) == typed && typed >= " ":
		a.filter += typed
	}
	return a, true
}

// words are what a person is told of the arrangement; none if everything is as it was sent.
func (a arrangement) words() string {
	var words []string
	if a.order != asSent {
		words = append(words, "sorted "+orderWords[a.order])
	}
	if a.filter != "" || a.typing {
		cursor := map[bool]string{true: "_"}[a.typing]
		words = append(words, "filter: "+a.filter+cursor)
	}
	return strings.Join(words, "   ")
}

// of is a state with the rows that are wanted, in their order.
func (a arrangement) of(state *service.State) *service.State {
	arranged := *state
	arranged.Leases = arrange(a, state.Leases, func(l service.LeaseState) []string { return []string{l.Owner, l.Caller, l.LogID} },
		func(x, y service.LeaseState) int { return cmp.Compare(x.ValidFor, y.ValidFor) })
	arranged.Locks = arrange(a, state.Locks, wordsOfLock,
		func(x, y service.LockState) int { return cmp.Compare(heldFor(y), heldFor(x)) })
	arranged.Members = arrange(a, state.Members, func(m service.MemberState) []string { return []string{m.Name, m.Owner, m.Caller, m.LogID} },
		func(x, y service.MemberState) int { return cmp.Compare(y.For, x.For) })
	return &arranged
}

func wordsOfLock(lock service.LockState) []string {
	words := []string{lock.Name}
	for _, one := range slices.Concat(lock.Holders, lock.Waiters) {
		words = append(words, one.Owner, one.Caller, one.LogID)
	}
	return words
}

func heldFor(lock service.LockState) float64 {
	if len(lock.Holders) == 0 {
		return -1
	}
	return lock.Holders[0].For
}

// arrange sorts those rows that have the filter in one of their words, of which the first is their name.
func arrange[T any](a arrangement, rows []T, words func(T) []string, earlier func(x, y T) int) []T {
	wanted := slices.DeleteFunc(slices.Clone(rows), func(row T) bool {
		return !strings.Contains(strings.ToLower(strings.Join(words(row), "\n")), strings.ToLower(a.filter))
	})
	switch a.order {
	case byName:
		slices.SortStableFunc(wanted, func(x, y T) int { return cmp.Compare(words(x)[0], words(y)[0]) })
	case byTime:
		slices.SortStableFunc(wanted, earlier)
	}
	return wanted
}

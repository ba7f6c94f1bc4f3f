package top

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sidekeeper/sidekeeper/service"
)

// hostile is what a caller may call itself to take a terminal over.
const hostile = "\x1b]0;owned\x07\x1b[2J<script>\u202e"

func stateForTop() *service.State {
	state := &service.State{Version: "v1.2.3", Uptime: 90, Reachable: true}
	state.Counts = service.Counts{Leases: 40, MaxLeases: 1000, Suspended: 1, Holds: 1, Waiters: 2}
	for range 40 {
		state.Leases = append(state.Leases, service.LeaseState{LogID: "6ade3b99", Owner: hostile, Caller: "uid:0", TTL: 15, ValidFor: 12, Holds: 1})
	}
	state.Leases[1].Sleeping, state.Leases[1].ValidFor = true, 0
	party := service.Party{LogID: "6ade3b99", Caller: "uid:7", Owner: "billing", For: 61, ValidFor: 12, Token: "17"}
	state.Locks = []service.LockState{{Name: "orders", Holders: []service.Party{party}, Waiters: []service.Party{party, party}}}
	state.Losses.Leases = map[string]int{"LEASE_LOST": 3}
	state.Latency = []service.Latency{{Operation: "heartbeat", Rate: 20, P50: 0.0012, P99: 0.025}}
	return state
}

func TestTopShowsEverythingThatTheStateHas(t *testing.T) {
	text := strings.Join(newView(stateForTop(), 0).lines(0), "\n")
	for _, want := range []string{
		"Sidekeeper v1.2.3, up for 1m30s, ensemble answers", "leases 40 of 1000   suspended 1   locks held 1   waiting 2",
		"████████░░  12s/15s", "sleeping   ░░░░░░░░░░",
		"orders  billing (6ade3b99)  uid:7   1m1s  17     2: billing (6ade3b99) for 1m1s, …", "no member",
		"leases  LEASE_LOST  3", "heartbeat  20.0    1.2ms  25ms",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colors where there is no terminal")
	}
}

func TestAnOwnerCannotPassForTheLeaseOrTheCallerBesideIt(t *testing.T) {
	state := stateForTop()
	state.Locks[0].Holders[0].Owner = "x (6ade3b99)  uid:0"
	text := strings.Join(newView(state, 0).lines(0), "\n")
	if want := `orders  "x (6ade3b99)  uid:0" (6ade3b99)  uid:7  `; !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

func TestTopFitsTheTerminalAndNobodysWordsCommandIt(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {20, 5}, {1, 1}, {200, 60}} {
		lines := newView(stateForTop(), size[0]).lines(size[1])
		if len(lines) > size[1] {
			t.Errorf("%d lines for a height of %d", len(lines), size[1])
		}
		for _, line := range lines {
			for _, paint := range paints {
				line = strings.TrimSuffix(strings.TrimPrefix(line, paint), "\x1b[0m")
			}
			if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e }) {
				t.Errorf("a terminal would obey %q", line)
			}
			if length := utf8.RuneCountInString(line); length > size[0] {
				t.Errorf("%d places in a width of %d: %q", length, size[0], line)
			}
		}
	}
}

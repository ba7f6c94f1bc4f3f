package main

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/service"
)

// hostile is what a caller may call itself to take a terminal over.
const hostile = "\x1b]0;owned\x07\x1b[2J<script>\u202e"

func stateForTop() *service.State {
	state := &service.State{Version: "v1.2.3", Uptime: 90, Reachable: true}
	state.Counts = service.Counts{Leases: 40, MostLeases: 1000, Suspended: 1, Holds: 1, Waiters: 2}
	for range 40 {
		state.Leases = append(state.Leases, service.LeaseState{Mark: "6ade3b99", Owner: hostile, Caller: "uid:0", TTL: 15, ValidFor: 12, Holds: 1})
	}
	party := service.Party{Mark: "6ade3b99", Owner: "billing", For: 61, ValidFor: 12, Token: "17"}
	state.Locks = []service.ThingState{{Name: "orders", Holders: []service.Party{party}, Waiters: []service.Party{party, party}}}
	state.Losses.Leases = map[string]int{"LEASE_LOST": 3}
	state.Latency = []service.Latency{{Operation: "heartbeat", Rate: 20, Half: 0.0012, Most: 0.025}}
	return state
}

func TestTopShowsEverythingThatTheStateHas(t *testing.T) {
	text := strings.Join(newTopView(stateForTop(), 0).lines(0), "\n")
	for _, want := range []string{
		"Sidekeeper v1.2.3, up for 1m30s, ensemble answers", "leases 40 of 1000   suspended 1   locks held 1   waiting 2",
		"████████░░  12s/15s", "orders  billing (6ade3b99)  1m1s  17     2: billing (6ade3b99) for 1m1s, …", "no member",
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

func TestTopFitsTheTerminalAndNobodysWordsCommandIt(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {20, 5}, {1, 1}, {200, 60}} {
		lines := newTopView(stateForTop(), size[0]).lines(size[1])
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

func TestTopWritesOnceWhereThereIsNoTerminal(t *testing.T) {
	s, welcome := develop(t, "--admin-listen=127.0.0.1:0")
	admin := said(t, welcome, `page: +http://(127\.0\.0\.1:\d+)/`)
	out, problem, code := output(t, "top", "--admin", admin)
	if code != 0 || !strings.Contains(out, "ensemble answers") || !strings.Contains(out, "no lease is open") {
		t.Errorf("exit %d, %s\n%s", code, problem, out)
	}
	out, problem, code = output(t, "top", "--admin", "http://"+admin+"/", "-o", "json")
	if code != 0 || !strings.HasPrefix(out, `{"version":`) {
		t.Errorf("exit %d, %s\n%s", code, problem, out)
	}
	s.signal(syscall.SIGINT)
	if code := s.ends(); code != 0 {
		t.Errorf("exit %d; log: %s", code, s.log)
	}
	_, problem, code = output(t, "top", "--admin", admin)
	if code != exit.Unreachable || !strings.Contains(problem, "start it with --admin-listen") {
		t.Errorf("exit %d without a sidecar: %s", code, problem)
	}
}

func TestTopSaysWhatIsWrongWithAnAddress(t *testing.T) {
	_, problem, code := output(t, "top", "--admin", "nonsense")
	if code != exit.Usage || !strings.Contains(problem, `--admin "nonsense": an address is host:port or unix:///path`) {
		t.Errorf("exit %d: %s", code, problem)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("\x1b[2J no HTTP\n"))
			conn.Close()
		}
	}()
	defer other.Close()
	_, problem, code = output(t, "top", "--admin", other.Addr().String())
	if code != exit.Unreachable || strings.Contains(problem, "\x1b") {
		t.Errorf("exit %d: %q", code, problem)
	}
}

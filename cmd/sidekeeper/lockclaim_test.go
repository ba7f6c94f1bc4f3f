package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAClaimIsMadeExtendedAndReleased(t *testing.T) {
	t.Parallel()
	s, _ := develop(t)
	file := filepath.Join(t.TempDir(), "claim")
	about := []string{"--claim-file", file, "--address", s.address}
	for range 2 { // the second time, the file has its id
		said, problem, code := output(t, append([]string{"lock", "claim", "staging", "--for", "1h", "--reason", "apply"}, about...)...)
		if code != 0 || !strings.HasPrefix(said, "staging is claimed until 20") {
			t.Fatalf("exit %d: %s%s", code, said, problem)
		}
	}
	if shown, _, _ := output(t, "lock", "show", "staging", "--address", s.address); !strings.Contains(shown, ": apply") {
		t.Error(shown)
	}
	id, err := os.ReadFile(file)
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{32}\n$`).Match(id) {
		t.Errorf("%q, %v", id, err)
	}
	for _, test := range []struct {
		args string
		want int
	}{
		{"lock run staging --try -- true", 75},
		{"lock claim staging --for 1h --reason more --try", 75},
		{"lock claim staging --for 1h --reason more --wait 10ms", 75},
		{"lock revoke staging", 75},
	} {
		args := strings.Fields(strings.Replace(test.args, "staging", "staging --address "+s.address, 1))
		if _, problem, code := output(t, args...); code != test.want {
			t.Errorf("%s: exit %d: %s", test.args, code, problem)
		}
	}
	if said, problem, code := output(t, append([]string{"lock", "extend", "--for", "2h"}, about...)...); code != 0 {
		t.Errorf("exit %d: %s%s", code, said, problem)
	}
	if said, problem, code := output(t, append([]string{"lock", "release"}, about...)...); code != 0 || said != "released\n" {
		t.Errorf("exit %d: %s%s", code, said, problem)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file stays: %v", err)
	}
	for _, args := range [][]string{{"lock", "extend", "--for", "2h"}, {"lock", "release"}} {
		args = append(args, "--claim", strings.TrimSpace(string(id)), "--address", s.address)
		want := map[string]int{"extend": 70, "release": 0}[args[1]]
		if _, problem, code := output(t, args...); code != want {
			t.Errorf("%s, when it has ended: exit %d: %s", args[1], code, problem)
		}
	}
}

func TestAClaimIsAskedForAsItMustBe(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"claim staging --reason x":                                   "--for is required",
		"claim staging --for 1h":                                     "--reason is required",
		"claim staging --for 59s --reason x":                         "from 1m0s to 720h0m0s",
		"claim staging --for 1h --reason x --try --wait 1s":          "exclude each other",
		"claim staging --for 1h --reason x --claim a --claim-file b": "exclude each other",
		"extend --for 1h":                                            "--claim or --claim-file is required",
		"extend --claim 0123456789abcdef0123456789abcdef":            "--for is required",
		"release":                             "--claim or --claim-file is required",
		"release --claim-file /nowhere/claim": "--claim or --claim-file is required",
		"claim staging --for 1h --reason x --claim-file /nowhere/new": "--claim-file",
	} {
		_, problem, code := output(t, strings.Fields("lock "+args)...)
		if code != 64 || !strings.Contains(problem, want) {
			t.Errorf("%s: exit %d: %s", args, code, problem)
		}
	}
}

func TestAClaimThatIsInterruptedIsWithdrawn(t *testing.T) {
	t.Parallel()
	s, _ := develop(t)
	if _, problem, code := output(t, "lock", "claim", "staging", "--for", "1h", "--reason", "a", "--address", s.address); code != 0 {
		t.Fatalf("exit %d: %s", code, problem)
	}
	waiting := start(t, "", "lock", "claim", "staging", "--for", "1h", "--reason", "b", "--address", s.address)
	contenders := func(want string) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for {
			listed, _, _ := output(t, "lock", "ls", "--address", s.address)
			if fields := strings.Fields(listed); len(fields) == 6 && fields[4] == want && fields[5] == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s, want %s contenders", listed, want)
			}
		}
	}
	contenders("2")
	waiting.signal(syscall.SIGINT)
	waiting.want(t, 130)
	contenders("1")
	const known = "0123456789abcdef0123456789abcdef" // which another job may have
	waiting = start(t, "", "lock", "claim", "staging", "--for", "1h", "--reason", "c", "--claim", known, "--address", s.address)
	contenders("2")
	waiting.signal(syscall.SIGTERM)
	waiting.want(t, 143)
	contenders("2")
}

func TestAClaimIsMadeOverHTTP(t *testing.T) {
	t.Parallel()
	_, welcome := develop(t, "--http-listen=127.0.0.1:0")
	origin := "http://" + said(t, welcome, `HTTP: +(\S+),`)
	const id = "0123456789abcdef0123456789abcdef"
	for _, call := range []struct {
		method, body, answer string
		want                 int
	}{
		{"Claim", `{"name":"staging","claim_id":"` + id + `","reserve_for":"3600s","reason":"build 4711"}`, `"until":"20`, http.StatusOK},
		{"Check", `{"claim_ids":["` + id + `"]}`, `"validFor":"58s"`, http.StatusOK},
		{"Extend", `{"claim_id":"` + id + `","reserve_for":"7200s"}`, `"until":"20`, http.StatusOK},
		{"Extend", `{"claim_id":"` + id + `","reserve_for":"1s"}`, "reserve_for", http.StatusBadRequest},
		{"Release", `{"claim_id":"` + id + `"}`, "", http.StatusOK},
		{"Extend", `{"claim_id":"` + id + `","reserve_for":"7200s"}`, "CLAIM_ENDED", http.StatusBadRequest},
	} {
		code, answer := posted(t, origin+"/sidekeeper.lock.v1.LockService/"+call.method, "", call.body)
		if code != call.want || !strings.Contains(answer, call.answer) {
			t.Errorf("%s %s: %d %s", call.method, call.body, code, answer)
		}
	}
}

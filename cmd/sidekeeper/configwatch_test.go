package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// launch runs `sidekeeper config` beside the test, until the test or stop ends it.
func (s *configScene) launch(args ...string) (p *program, stop func()) {
	s.t.Helper()
	return launchConfig(s.t, s.sidecar.Address(), args...)
}

func launchConfig(t *testing.T, address string, args ...string) (p *program, stop func()) {
	t.Helper()
	p = start(t, address, append([]string{"config"}, args...)...)
	return p, func() { p.signal(syscall.SIGTERM) }
}

func TestWatchTellsTheStateAndThenWhatChanges(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	s.put("app/db", "primary")
	s.put("app", "")
	s.put("apple", "not below app")
	p, stop := s.launch("watch", "app/")
	p.wantLine(t, `entry    app  version 1  -`)
	p.wantLine(t, `entry    app/db  version 1  primary`)
	p.wantLine(t, `synced`)
	s.put("apple", "still not")
	s.put("app/db", "two\nlines")
	p.wantLine(t, `put      app/db  version 2  "two\nlines"`)
	s.remove("app/db")
	p.wantLine(t, `deleted  app/db`)
	s.put("app/new", "\xff")
	p.wantLine(t, `put      app/new  version 1  (1 bytes)`)
	stop()
	p.want(t, 0)
	if said := p.stderr.String(); said != "" {
		t.Error(said)
	}
}

func TestWatchTellsOfExactKeysAsJSON(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	s.put("app/db", "primary")
	p, _ := s.launch("watch", "--exact", "app", "app/none", "-o", "json")
	p.wantLine(t, `{"event":"synced"}`)
	s.put("app/db", "secondary")
	written := s.put("app/none", "1")
	number := strings.ReplaceAll(`"revision":"N","createdRevision":"N"`, "N", strconv.FormatInt(written.Revision, 10))
	p.wantLine(t, `{"event":"put","key":"app/none","entry":{"key":"app/none","text":"1","version":1,`+number+`}}`)
	s.remove("app/none")
	p.wantLine(t, `{"event":"deleted","key":"app/none"}`)
}

func TestWatchSaysWhenItIsOutOfContact(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	p, _ := s.launch("watch")
	p.wantLine(t, "synced")
	s.sidecar.Suspend(time.Hour)
	p.wantLine(t, "stale")
	s.sidecar.Suspend(0)
	p.wantLine(t, "fresh")
	s.put("app", "1")
	p.wantLine(t, "put      app  version 1  1")
}

func TestWatchRunsTheCommandUntilItHasSeenTheNewestState(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	s.put("app", "1")
	pipe := fifo(t, "proceed")
	// Each run tells the state, and ends when the test says so.
	p, stop := s.launch("watch", "app", "--exec",
		`echo $SIDEKEEPER_CONFIG_CHANGES $(grep -o '"text":"[^"]*"'); read code <`+pipe+`; exit $code`)
	proceed := func(code string) {
		t.Helper()
		if err := os.WriteFile(pipe, []byte(code+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.wantLine(t, `0 "text":"1"`)
	s.put("app", "2")
	s.put("app/more", "3")
	s.put("app", "4")
	proceed("0")
	for !strings.HasSuffix(receive(t, p.lines), ` "text":"4" "text":"3"`) {
		proceed("0")
	}
	proceed("3")
	s.remove("app/more")
	p.wantLine(t, `1 "text":"4"`)
	stop()
	p.want(t, 0, "sidekeeper: the command exited with 3; it runs again with the next change\n")
}

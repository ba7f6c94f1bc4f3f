package main

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// launch runs `sidekeeper config` beside the test, until the test or stop ends it.
func (s *configScene) launch(args ...string) (p *program, stop func()) {
	s.t.Helper()
	return launchConfig(s.t, s.sidecar.Address(), args...)
}

func launchConfig(t *testing.T, address string, args ...string) (p *program, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p = launch(ctx, append([]string{"--address", address, "config"}, args...)...)
	t.Cleanup(func() {
		cancel()
		for range p.lines { // until its end
		}
	})
	return p, cancel
}

func TestWatchTellsTheStateAndThenWhatChanges(t *testing.T) {
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

func TestACommandIsToldWhatHasChangedSinceItLastBegan(t *testing.T) {
	w := &configWatch{changed: map[string]string{}}
	view := map[string]*sidekeeper.Entry{}
	put := func(key, value string) configEvent {
		view[key] = &sidekeeper.Entry{Key: key, Value: []byte(value)}
		return configEvent{name: eventPut, key: key, entry: view[key]}
	}
	about := func() string {
		next := w.nextRun()
		var words []string
		for _, variable := range next.environment {
			words = append(words, strings.TrimPrefix(variable, "SIDEKEEPER_CONFIG_"))
		}
		texts := regexp.MustCompile(`"text":"[^"]*"`).FindAllString(string(next.stdin), -1)
		return strings.Join(append(words, texts...), " ")
	}
	for _, c := range []struct {
		events func() []configEvent
		news   bool
		about  string
	}{
		{func() []configEvent { return []configEvent{{name: eventSynced}} }, true, `CHANGES=0 KEY= EVENT=`},
		{func() []configEvent { return []configEvent{put("b", "1")} }, true, `CHANGES=1 KEY=b EVENT=put "text":"1"`},
		{
			func() []configEvent { return []configEvent{put("b", "2"), put("a", "1"), put("b", "3")} },
			true, `CHANGES=2 KEY= EVENT= "text":"1" "text":"3"`,
		},
		{
			func() []configEvent {
				delete(view, "b")
				return []configEvent{{name: eventPut, key: "b"}, {name: eventDeleted, key: "b"}}
			}, true, `CHANGES=1 KEY=b EVENT=deleted "text":"1"`,
		},
		{
			func() []configEvent { return []configEvent{{name: eventStale}, {name: eventFresh}} },
			false, `CHANGES=0 KEY= EVENT= "text":"1"`,
		},
	} {
		if news := w.note(view, c.events()); news != c.news {
			t.Errorf("%s: news %v", c.about, news)
		}
		if got := about(); got != c.about {
			t.Errorf("%s, want %s", got, c.about)
		}
	}
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// edits runs `config edit` with a shell script as the editor, whose $1 is the file.
func (s *configScene) edits(key, script string) (stdout, stderr string, code int) {
	s.t.Helper()
	editor := filepath.Join(s.t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.t.Setenv("VISUAL", editor)
	s.t.Setenv("TMPDIR", s.t.TempDir())
	return s.runs("", "edit", key)
}

// leftovers are the files that edits have left.
func leftovers(t *testing.T) string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(left, " ")
}

func TestWhatTheEditorLeavesIsWritten(t *testing.T) {
	s := newConfigScene(t)
	s.put("app/settings.json", "{}")
	script := `stat -c %a "$1"; basename "$1"; cat "$1"; printf '{"a":1}\n' >"$1"`
	stdout, stderr, code := s.edits("app/settings.json", script)
	if want := "600\nsettings.json\n{}app/settings.json has version 2\n"; code != 0 || stdout+stderr != want {
		t.Errorf("%d %q", code, stdout+stderr)
	}
	if _, _, code = s.edits("app/new", `test -s "$1" || echo 5 >"$1"`); code != 0 {
		t.Errorf("%d", code)
	}
	// A newline at the end stays if there was one, and is the editor's if there was none.
	s.put("app/text", "one\n")
	if _, _, code = s.edits("app/text", `printf 'two\n' >"$1"`); code != 0 {
		t.Errorf("%d", code)
	}
	if got := s.stored(""); got != `app/new=5 app/settings.json={"a":1} app/text=two`+"\n" {
		t.Errorf("%q", got)
	}
	if left := leftovers(t); left != "" {
		t.Error(left)
	}
}

func TestAnUnchangedValueIsNotWritten(t *testing.T) {
	s := newConfigScene(t)
	before := s.put("app", "5")
	if stdout, _, code := s.edits("app", `echo >>"$1"`); code != 0 || stdout != "app is unchanged\n" {
		t.Errorf("%d %q", code, stdout)
	}
	if now, err := s.config.Get(t.Context(), "app"); err != nil || now.Revision != before.Revision {
		t.Errorf("%v %v", now, err)
	}
	if left := leftovers(t); left != "" {
		t.Error(left)
	}
}

func TestAnEditThatSomebodyOvertookIsKeptInItsFile(t *testing.T) {
	s := newConfigScene(t)
	for what, meanwhile := range map[string]func(){
		"written":   func() { s.put("app", "theirs") },
		"made anew": func() { s.remove("app"); s.put("app", "mine") }, // with the same version
		"deleted":   func() { s.remove("app") },
	} {
		t.Run(what, func(t *testing.T) {
			s.put("app", "mine")
			// The editor tells when it has begun, and goes on when somebody has overtaken it.
			begun, proceed := fifo(t, "begun"), fifo(t, "proceed")
			overtaken := make(chan error, 1)
			go func() {
				_, err := os.ReadFile(begun)
				meanwhile()
				overtaken <- errors.Join(err, os.WriteFile(proceed, nil, 0o600))
			}()
			_, stderr, code := s.edits("app", "echo >"+begun+"; cat "+proceed+`; printf edited >"$1"`)
			if err := receive(t, overtaken); err != nil {
				t.Fatal(err)
			}
			kept := regexp.MustCompile(`^sidekeeper: app was changed in the meantime; nothing was written; ` +
				`your text is kept in (\S+)\n$`).FindStringSubmatch(stderr)
			if code != 75 || kept == nil {
				t.Fatalf("%d %q", code, stderr)
			}
			text, err := os.ReadFile(kept[1])
			if err != nil || string(text) != "edited" {
				t.Errorf("%q %v", text, err)
			}
		})
	}
}

func TestAnEditorThatFailsWritesNothing(t *testing.T) {
	s := newConfigScene(t)
	s.put("app", "5")
	if _, stderr, code := s.edits("app", "exit 3"); code != 1 || !strings.HasSuffix(stderr, "exit status 3: nothing is written\n") {
		t.Errorf("%d %q", code, stderr)
	}
	if left := leftovers(t); left != "" {
		t.Error(left)
	}
	if _, stderr, code := s.edits("app", `echo 6 >"$1"; exit 3`); code != 1 || !strings.Contains(stderr, "your text is kept in "+leftovers(t)) {
		t.Errorf("%d %q", code, stderr)
	}
	if got := s.stored(""); got != "app=5" {
		t.Error(got)
	}
}

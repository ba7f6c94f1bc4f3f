package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/sink"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheAuditFileIsOursAloneAndMayBeMovedAway(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		path := t.TempDir() + "/audit"
		to := sink.New(io.Discard)
		audit, err := (&settings{auditLog: path}).newAudit(to, zap.NewNop(), nil)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * auditPause)
		audit.log.Info("grant", zap.String("name", "first"))
		<-time.After(2 * sink.Brief)
		synctest.Wait()
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * auditPause)
		audit.log.Info("grant", zap.String("name", "second"))
		to.Close()
		for file, want := range map[string]string{path + ".1": `"event":"grant","name":"first"`, path: `"event":"grant","name":"second"`} {
			text := content(t, file)
			if strings.Count(text, "\n") != 1 || !strings.Contains(text, want) || !strings.Contains(text, `"logger":"audit"`) {
				t.Errorf("%s: %s; want one line with %s", file, text, want)
			}
			if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v %v", file, info.Mode(), err)
			}
		}
	})
}

func TestTheAuditGoesToTheLogOrNowhereAsTold(t *testing.T) {
	t.Parallel()
	for where, lines := range map[string]int{auditToLog: 1, auditOff: 0} {
		var out bytes.Buffer
		to := sink.New(&out)
		audit, err := (&settings{auditLog: where}).newAudit(to, zap.NewNop(), nil)
		if err != nil {
			t.Fatal(err)
		}
		audit.log.Info("grant")
		if to.Close(); strings.Count(out.String(), "\n") != lines {
			t.Errorf("%s: %s", where, out.String())
		}
	}
}

// A reader of the audit log learns that lines are missing, and where. One of the sidecar's log learns once which file cannot be written, and
// why.
func TestTheAuditSaysWhereLinesAreMissing(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		path, dropped := t.TempDir()+"/audit", 0
		to, book := sink.New(io.Discard), &expect.Logbook{}
		audit, err := (&settings{auditLog: path, auditStrict: true}).newAudit(to, book.Logger(), func(lines int) { dropped += lines })
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * auditPause)
		audit.log.Info("grant")
		audit.Written(0, func(all bool) { expect.Same(t, "written", all, false) })
		<-time.After(4 * auditPause)
		synctest.Wait()
		expect.Same(t, "dropped", dropped, 1)
		expect.Same(t, "takes", audit.Takes(), false)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * auditPause)
		audit.log.Info("release")
		to.Close()
		if text := content(t, path); !regexp.MustCompile(`^{.*"event":"gap","lines":1}\n{.*"event":"release"}\n$`).MatchString(text) {
			t.Errorf("written: %s", text)
		}
		want := `^{"level":"error",.*"the audit log cannot be written: nothing is granted","file":"` + path + `","error":"open ` + path + `: is .*"}
{"level":"info",.*"msg":"the audit log can be written again","file":"` + path + `","after":.*,"lines":1,"refused":2}
$`
		if said := book.Text(); !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("said: %s", said)
		}
	})
}

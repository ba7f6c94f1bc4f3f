package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
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
	path := t.TempDir() + "/audit"
	s := &settings{auditLog: path}
	audit, closer, err := s.newAudit(nil)
	if err != nil {
		t.Fatal(err)
	}
	audit.Info("grant", zap.String("name", "first"))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	closer.(*auditFile).looked = time.Time{} // a second later
	audit.Info("grant", zap.String("name", "second"))
	for file, want := range map[string]string{path + ".1": `"event":"grant","name":"first"`, path: `"event":"grant","name":"second"`} {
		if text := content(t, file); strings.Count(text, "\n") != 1 || !strings.Contains(text, want) || !strings.Contains(text, `"logger":"audit"`) {
			t.Errorf("%s: %s; want one line with %s", file, text, want)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", file, info.Mode(), err)
		}
	}
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheAuditGoesToTheLogOrNowhereAsTold(t *testing.T) {
	t.Parallel()
	for where, lines := range map[string]int{auditToLog: 1, auditOff: 0} {
		var out bytes.Buffer
		audit, closer, err := (&settings{auditLog: where}).newAudit(&out)
		if err != nil {
			t.Fatal(err)
		}
		audit.Info("grant")
		if err := closer.Close(); err != nil || strings.Count(out.String(), "\n") != lines {
			t.Errorf("%s: %v, %s", where, err, out.String())
		}
	}
}

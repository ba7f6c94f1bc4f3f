package house

import (
	"regexp"
	"strings"
	"testing"
)

// What would have a caller wait for the reader of a log.
var waitingLog = regexp.MustCompile(
	`zapcore\.(AddSync|Lock|Open|BufferedWriteSyncer)\b|zap\.(NewProduction|NewDevelopment|NewExample|Open)\b|\b(os|syscall)\.Stderr\b`,
)

// These write to standard error by themselves: the program's beginning, and a guardian, which keeps no lock of others.
var writesItself = []string{"cmd/sidekeeper/main.go", "internal/supervise/"}

// Each log of a process that stays goes through a sink. What writes past it may wait for the log's reader, and keep locks meanwhile.
func TestEveryLogGoesThroughASink(t *testing.T) {
	t.Parallel()

	cores := 0

	for _, file := range files(t, ".go") {
		if file.isTest() || !startsWithAny(file.path, "cmd/", "internal/", "service/", "recipes/") {
			continue
		}

		cores += strings.Count(file.text, "zapcore.NewCore(")

		if found := waitingLog.FindString(file.text); found != "" && !startsWithAny(file.path, writesItself...) {
			t.Errorf("%s: %s writes past internal/sink", file.path, found)
		}
	}

	if cores != strings.Count(read(t, "cmd/sidekeeper/serve.go")+read(t, "cmd/sidekeeper/auditlog.go"), "zapcore.NewCore(") {
		t.Error("a log is made elsewhere than in cmd/sidekeeper/serve.go and cmd/sidekeeper/auditlog.go")
	}
}

func startsWithAny(path string, beginnings ...string) bool {
	for _, beginning := range beginnings {
		if strings.HasPrefix(path, beginning) {
			return true
		}
	}

	return false
}

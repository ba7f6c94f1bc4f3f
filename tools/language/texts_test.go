package main

import (
	"slices"
	"strings"
	"testing"
)

func TestTextsAreReadFromTheStringsOfEachLanguage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, source, text string
		lines              []int
	}{
		{"a.go", `
// a "quoted comment"
var err = errors.New("the lock \"a\" is" +
	" lost")`, `the lock "a" is lost`, []int{3}},
		{"a.go", "f(\"one text\", \"another one\", '\"', `raw and\nof two lines`)", "one text|another one|raw and|of two lines", []int{1, 1, 1, 1}},
		{"a.py", `# it's a "comment here"
"""What "this is" for."""
raise Error(
	f"no {a} here"
	f' and there', "b")`, "no {a} here and there", []int{4}},
		{"a.ts", "/* it's \"a comment\" */ throw new Error(`no ${a} here`);", "no ${a} here", []int{1}},
		{"A.java", `throw new A("held by "
	+ owner + "since then"); // it's done`, "held by|since then", []int{1, 2}},
	} {
		text, lines := textsOf(c.name, c.source)
		got := strings.Split(strings.TrimSpace(text), "\n\n")
		want := strings.Split(c.text, "|")
		var at []int
		for i := 0; i < len(lines); i += 2 { // a text, and the line that divides it from the next
			at = append(at, lines[i])
		}
		if !slices.Equal(got, want) || !slices.Equal(at, c.lines) {
			t.Errorf("%s\ngot  %q at %v\nwant %q at %v", c.source, got, at, want, c.lines)
		}
	}
}

func TestCommentsAreReadWhereTheyStand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, source, text string }{
		{"a.go", "package a\n\n// one\n// and more\nvar b = \"// text\" // two\n", "\n\n one\n and more\n two\n"},
		{"a.py", "a = 1  # one\n\n\"\"\"two\n\nthree\"\"\"\n", " one\n\ntwo\n\nthree\n"},
		{"A.java", "/** one\n * two\n */\nString a = \"/* text */\";", " one\n two\n\n"},
	} {
		if got := commentsOf(c.name, c.source); got != c.text {
			t.Errorf("%s: got %q, want %q", c.source, got, c.text)
		}
	}
}

func TestFilesAreReadAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"README.md":                                              "prose",
		"clients/java/CHANGELOG.md":                              "prose",
		"docs/guide-locks.md":                                    "prose",
		"docs/api/lock.md":                                       "",
		"docs/commands.md":                                       "",
		"proto/sidekeeper/lock/v1/lock.proto":                    "prose",
		"cmd/sidekeeper/help/lock-run.txt":                       "prose",
		"tools/site/requirements.txt":                            "",
		"cmd/sidekeeper/settings.go":                             "code",
		"service/errors.go":                                      "code",
		"service/errors_test.go":                                 "",
		"gen/sidekeeper/lock/v1/lock.pb.go":                      "",
		"clients/go/sidekeeper/lock.go":                          "code",
		"clients/go/scripted/server.go":                          "",
		"clients/python/src/sidekeeper/aio.py":                   "code",
		"clients/python/src/sidekeeper/lock/v1/lock_pb2_grpc.py": "",
		"clients/typescript/src/errors.ts":                       "code",
		"clients/typescript/src/gen/sidekeeper/lock/v1/lock.ts":  "",
		"clients/java/src/main/java/io/sidekeeper/Lock.java":     "code",
		"clients/java/adapters/spring/src/main/java/io/sidekeeper/spring/SpringLocks.java": "code",
		"clients/java/src/test/java/io/sidekeeper/LockTest.java":                           "",
		"test/house/doc.go": "",
	} {
		got := ""
		switch {
		case isProse(name):
			got = "prose"
		case isShippedCode(name):
			got = "code"
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

package console

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheTokenIsGoodForWhatThePageCalls reads what the page calls from its scripts.
func TestTheTokenIsGoodForWhatThePageCalls(t *testing.T) {
	t.Parallel()
	scripts, err := fs.Glob(page, "page/*.js")
	if err != nil {
		t.Fatal(err)
	}
	var called []string
	for _, script := range scripts {
		text, err := fs.ReadFile(page, script)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]string{}
		for _, found := range regexp.MustCompile(`const (\w+) = "([\w.]+Service)"`).FindAllStringSubmatch(string(text), -1) {
			names["${"+found[1]+"}"] = found[2]
		}
		for _, found := range regexp.MustCompile("[`\"](\\$\\{\\w+\\}|[\\w.]+Service)/(\\w+)[`\"]").FindAllStringSubmatch(string(text), -1) {
			service, method := found[1], found[2]
			if name, ok := names[service]; ok {
				service = name
			}
			called = append(called, "/"+service+"/"+method)
		}
	}
	slices.Sort(called)
	permitted := slices.Sorted(slices.Values(methods))
	if got, want := strings.Join(slices.Compact(called), "\n"), strings.Join(permitted, "\n"); got != want {
		t.Errorf("the page calls\n%s\nand its token is good for\n%s", got, want)
	}
}

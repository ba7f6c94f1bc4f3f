// It looks inside: which nodes names stand for is a table of them.

package service

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for value, good := range map[string]bool{
		"orders": true, "a/b/c": true, "A-z_0.9": true, "..a": true, "a/zookeeper": true, "zookeepers": true,
		strings.Repeat("x", 64): true, strings.Repeat("x/", 99) + "xx": true,
		"": false, "/a": false, "a/": false, "a//b": false, ".": false, "a/..": false, "zookeeper": false, "zookeeper/a": false,
		strings.Repeat("x", 65): false, strings.Repeat("x/", 100) + "x": false,
		"a b": false, "ä": false, "a%2Fb": false, "a\x00b": false, "a\nb": false, "\xff": false,
	} {
		if _, err := parseName("name", value); (err == nil) != good {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func FuzzANameNeverLeavesItsDirectoryAndIsReadBack(f *testing.F) {
	for _, seed := range []string{"orders", "a/b", "../x", "a%2F..", "."} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, value string, nested bool) {
		parsed, err := parseName("name", value)
		if err != nil {
			return
		}
		d := directory{root: "/var/locks", nested: nested}
		relative, inside := strings.CutPrefix(d.lock(parsed).Path, d.root+"/")
		if !inside || !nested && strings.Contains(relative, "/") {
			t.Errorf("%q lies at %q", value, d.lock(parsed).Path)
		}
		if back, ok := d.name(relative); !ok || back != parsed {
			t.Errorf("%q is read back as %q", value, back)
		}
	})
}

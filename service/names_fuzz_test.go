// It looks inside: a fuzzer tries more names than calls could carry.

package service

import (
	"encoding/base64"
	"path"
	"strings"
	"testing"
	"unicode/utf16"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
)

// directories are one of each layout.
var directories = []directory{
	{root: "/var/locks"},
	{root: "/var/locks", nested: true},
	{root: "/var/locks", shared: true},
	{root: "/var/locks", nested: true, shared: true},
}

// zookeeperTakes is what ZooKeeper's PathUtils asks of a path, on the 16-bit characters that Java sees.
func zookeeperTakes(node string) bool {
	if !strings.HasPrefix(node, "/") || node != "/" && path.Clean(node) != node {
		return false
	}
	for _, c := range utf16.Encode([]rune(node)) {
		if c <= 0x1f || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff || c >= 0xfff0 {
			return false
		}
	}
	return true
}

func FuzzTwoNamesNeverShareANode(f *testing.F) {
	for _, pair := range [][2]string{
		{"orders", "orders"},
		{"a/b", "a%2Fb"},
		{"a", "a/b"},
		{"a/b", "a.b"},
		{"a/.b", "a./b"},
		{"..a", ".../a"},
		{"zookeepers", "a/zookeeper"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		for _, d := range directories {
			node, ok := d.pathOf(t, one)
			others, too := d.pathOf(t, other)
			if ok && too && one != other && node == others {
				t.Errorf("%q and %q both lie at %q", one, other, node)
			}
			if ok && too && !d.nested && strings.HasPrefix(node, others+"/") {
				t.Errorf("%q lies in %q", node, others)
			}
		}
	})
}

// pathOf is where a name lies, if it is one. Names of all kinds lie alike.
func (d directory) pathOf(t *testing.T, value string) (node string, ok bool) {
	t.Helper()
	parsed, err := parseName("name", value)
	if err != nil {
		same(t, "outcome of "+value, outcome(toldOf(err)), "InvalidArgument INVALID_FIELD name")
		return "", false
	}
	node = d.lock(parsed).Path
	if !zookeeperTakes(node) || !strings.HasPrefix(node, d.root+"/") {
		t.Errorf("%q lies at %q", value, node)
	}
	if !d.nested && (d.group(parsed).Path != node || d.sequence(parsed).Path != node) {
		t.Errorf("%q lies at %q, %q and %q", value, node, d.group(parsed).Path, d.sequence(parsed).Path)
	}
	return node, true
}

// Others may have put anything into a directory. What is taken for a name leads back to the node that was found, and to no
// other.
func FuzzWhatLiesInADirectoryIsTheNodeOfItsName(f *testing.F) {
	for _, found := range []string{"orders", "a%2Fb", "a%2fb", "%2F", "a%252Fb", "..", "_c_x-lock-0000000001", "ключ", "\xff", "a/b"} {
		f.Add(found)
	}
	f.Fuzz(func(t *testing.T, found string) {
		for _, d := range directories {
			if strings.Contains(found, "/") && !d.nested {
				continue // no child of a directory is called so
			}
			parsed, ok := d.name(found)
			if node := d.lock(parsed).Path; ok && node != d.root+"/"+found {
				t.Errorf("%q is taken for the name %q, which lies at %q", found, parsed, node)
			}
		}
	})
}

// A program of another library may have given a lock any name that ZooKeeper takes.
func FuzzANameThatIsShownLiesAtANodeThatZooKeeperTakes(f *testing.F) {
	for _, shown := range []string{"orders:eu", "a b/c", "a//b", "../x", "zookeeper", "\x7f", "ключ", "\U0001F600", "\ufff0", "\xff", "a%2Fb"} {
		f.Add(shown)
	}
	f.Fuzz(func(t *testing.T, shown string) {
		for _, d := range directories {
			parsed, err := d.parseShown(shown)
			if err != nil {
				same(t, "outcome", outcome(toldOf(err)), "InvalidArgument INVALID_FIELD name")
				continue
			}
			node := d.lock(parsed).Path
			relative, inside := strings.CutPrefix(node, d.root+"/")
			if back, ok := d.name(relative); !inside || !zookeeperTakes(node) || d.shared && (!ok || back != parsed) {
				t.Errorf("%q lies at %q, which is %q", shown, node, back)
			}
		}
	})
}

// What is shown of a page's end leads to the next one, and no token makes anything but a page.
func FuzzPageTokens(f *testing.F) {
	f.Add("orders", int32(0))
	f.Add(nextToken("orders"), int32(1000))
	f.Add("a/b", int32(-1))
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("2 orders")), int32(1001))
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(tokenForm)), int32(7))
	f.Fuzz(func(t *testing.T, text string, size int32) {
		if text != "" {
			asked, err := parsePage(&configv1.ListRequest{PageToken: nextToken(text)})
			same(t, "after", asked.after, text)
			same(t, "outcome", outcome(err), "OK")
		}
		asked, err := parsePage(&configv1.ListRequest{PageSize: size, PageToken: text})
		if err == nil && (asked.size < 1 || asked.size > largestPage || (text == "") != (asked.after == "")) {
			t.Errorf("%d of %q make a page of %d after %q", size, text, asked.size, asked.after)
		}
		if field := outcome(toldOf(err)); err != nil && !strings.HasPrefix(field, "InvalidArgument INVALID_FIELD page_") {
			t.Errorf("a page of %d after %q: %s", size, text, field)
		}
	})
}

// An id is a secret: it opens what it stands for and nothing else, and no error repeats it.
func FuzzIDs(f *testing.F) {
	for _, id := range []string{"", "0", strings.Repeat("0", 32), strings.Repeat("F", 32), strings.Repeat("a", 31) + "\n"} {
		f.Add(id, "uid:1")
		f.Add(id, "uid:2")
	}
	var leases idRegistry[string]
	key, _ := leases.enter("uid:1", "lease")
	f.Fuzz(func(t *testing.T, id, identity string) {
		if _, _, found := leases.find(id, identity); found && (id != key || identity != "uid:1") {
			t.Errorf("%q opens the lease to %q", id, identity)
		}
		if _, _, found := leases.find(key, identity); found != (identity == "uid:1") {
			t.Errorf("to %q the lease is open: %t", identity, found)
		}
		err := parseID("lease_id", id)
		if (err == nil) != isID(id) {
			t.Errorf("%q: %v", id, err)
		}
		if err == nil {
			return
		}
		if said, always := err.Error(), parseID("lease_id", strings.Repeat("#", len(id))).Error(); said != always {
			t.Errorf("what is said of %q tells more than its length: %s", id, said)
		}
	})
}

func isID(text string) bool {
	digits := 0
	for _, c := range []byte(text) {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'f' {
			digits++
		}
	}
	return digits == 32 && len(text) == 32
}

// toldOf is an error as its caller is told it.
func toldOf(err error) error {
	told, _ := StatusOf(err)
	return told.Err()
}

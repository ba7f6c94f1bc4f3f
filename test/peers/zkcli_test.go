package peers

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What ZooKeeper's command line is told, and what it says to each. The numbers of transactions and the times differ.
var commands = []struct{ command, want string }{
	{"ls /", "[zookeeper]"},
	{"create /peers hello", "Created /peers"},
	{"get /peers", "hello"},
	{"create -e -s /peers/place- first", "Created /peers/place-0000000000"},
	{"getEphemerals", "[/peers/place-0000000000]"},
	{"create -e -s /peers/place- second", "Created /peers/place-0000000001"},
	{"ls /peers", "[place-0000000000, place-0000000001]"},
	{"set -v 7 /peers other", "version No is not valid : /peers"},
	{"set /peers bye", ""},
	{"delete /peers", "Node not empty: /peers"},
	{"create -c /peers/box", "Created /peers/box"},
	{"stat /peers", "" +
		"cZxid = 0x?\nctime = ?\nmZxid = 0x?\nmtime = ?\npZxid = 0x?\ncversion = 3\ndataVersion = 1\naclVersion = 0\n" +
		"ephemeralOwner = 0x0\ndataLength = 3\nnumChildren = 3"},
	{"get -s /peers/box", "null\n" +
		"cZxid = 0x?\nctime = ?\nmZxid = 0x?\nmtime = ?\npZxid = 0x?\ncversion = 0\ndataVersion = 0\naclVersion = 0\n" +
		"ephemeralOwner = 0x0\ndataLength = 0\nnumChildren = 0"},
	{"getAcl /peers", "'world,'anyone\n: cdrwa"},
	{"ls /nowhere", "Node does not exist: /nowhere"},
	{"sync /", "Sync is OK"},
	{"deleteall /peers", ""},
	{"ls /", "[zookeeper]"},
	{"quit", ""},
}

func TestZooKeepersCommandLineWorks(t *testing.T) {
	onBoth(t, func(t *testing.T, servers string) {
		script, want := "", ""
		for _, each := range commands {
			script += each.command + "\n"
			if each.want != "" {
				want += each.want + "\n"
			}
		}
		cli := javaCommand(t, "org.apache.zookeeper.ZooKeeperMain", "-server", servers)
		cli.Stdin = strings.NewReader(script)
		output, err := cli.CombinedOutput()
		if err != nil {
			t.Fatalf("%v:\n%s", err, output)
		}
		if diff := cmp.Diff(want, told(string(output))); diff != "" {
			t.Errorf("what the command line said (-want +got):\n%s", diff)
		}
	})
}

var (
	unasked = regexp.MustCompile(`(?m)^(?:Connecting to .*|Welcome to ZooKeeper!|JLine support is disabled|)\n` +
		`(?:WATCHER::\n\nWatchedEvent .*\n)?`)
	changing = regexp.MustCompile(`(?m)^([cmp]Zxid = 0x|[cm]time = ).*$`)
)

// told is what the program says when asked, with ? for numbers of transactions and times.
func told(output string) string {
	return changing.ReplaceAllString(unasked.ReplaceAllString(output, ""), "${1}?")
}

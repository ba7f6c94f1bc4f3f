package embedded

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// rewrite writes what the real server answered into the contracts, to be read before they are committed.
var rewrite = flag.Bool("rewrite-contract", false, "write the real server's answers into testdata")

// A contract is a file of scripts, and who plays them.
type contract struct {
	name, file string
	root       string // of its directories; a session's nodes go in an order that hangs on their paths
	open       func(t *testing.T, address, root string) player
}

// A player runs the lines of a script and gives what its clients heard.
type player interface {
	run(line string) string
	close()
}

var contracts = []contract{
	{"raw", "testdata/contract.txt", "/chapter", func(t *testing.T, address, root string) player {
		t.Helper()
		return newScript(t, address, root)
	}},
	{"go-zookeeper", "testdata/go_zookeeper.txt", "/go-chapter", newGoScript},
}

// A chapter of the contract is one script with what a server answers to each line.
type chapter struct {
	title     string
	exchanges []exchange
}

type exchange struct{ line, want string }

// read reads the contract's file: chapters begin with "# ", what a client hears is indented.
func (c contract) read(t *testing.T) []chapter {
	t.Helper()
	text, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	var chapters []chapter
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "# "):
			chapters = append(chapters, chapter{title: line[2:]})
		case strings.HasPrefix(line, "    "):
			exchanges := chapters[len(chapters)-1].exchanges
			last := &exchanges[len(exchanges)-1]
			last.want = strings.TrimPrefix(last.want+"\n"+line[4:], "\n")
		case line != "":
			current := &chapters[len(chapters)-1]
			current.exchanges = append(current.exchanges, exchange{line: line})
		}
	}
	return chapters
}

// play runs a chapter and gives what was answered.
func (c chapter) play(p player) []exchange {
	defer p.close()
	var got []exchange
	for _, e := range c.exchanges {
		got = append(got, exchange{line: e.line, want: p.run(e.line)})
	}
	return got
}

// play runs all chapters, each in a directory of its own.
func (c contract) play(t *testing.T, address string, rewrite bool) {
	t.Helper()
	var played []chapter
	for i, wanted := range c.read(t) {
		t.Run(wanted.title, func(t *testing.T) {
			got := wanted.play(c.open(t, address, fmt.Sprint(c.root, i)))
			played = append(played, chapter{title: wanted.title, exchanges: got})
			if diff := cmp.Diff(wanted.exchanges, got, cmp.AllowUnexported(exchange{})); diff != "" && !rewrite {
				t.Error(diff)
			}
		})
	}
	if rewrite {
		c.write(t, played)
	}
}

func playAll(t *testing.T, address string, rewrite bool) {
	t.Helper()
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) { c.play(t, address, rewrite) })
	}
	t.Run("go-zookeeper's locks", func(t *testing.T) { excludeEachOther(t, address) })
}

func TestARealServerKeepsTheContract(t *testing.T) {
	playAll(t, realServer(t), *rewrite)
}

func TestTheEmbeddedEnsembleKeepsTheContract(t *testing.T) {
	playAll(t, serveEmbedded(t), false)
}

func serveEmbedded(t *testing.T) string {
	t.Helper()
	e := New(Options{})
	s, err := Serve(e, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Cleanup(s.Close)
	return s.Address()
}

// realServer is the address of a standalone ZooKeeper: the one that SIDEKEEPER_TEST_ZOOKEEPER names, or one that is
// started for this test. It must answer ruok.
func realServer(t *testing.T) string {
	t.Helper()
	if address := os.Getenv("SIDEKEEPER_TEST_ZOOKEEPER"); address != "" {
		return address
	}
	return realServerWith(t, ensemble.Options{Servers: 1, MaxClientConnections: -1})
}

func (c contract) write(t *testing.T, chapters []chapter) {
	t.Helper()
	var out strings.Builder
	for _, played := range chapters {
		fmt.Fprintf(&out, "# %s\n\n", played.title)
		for _, e := range played.exchanges {
			fmt.Fprintf(&out, "%s\n    %s\n", e.line, strings.ReplaceAll(e.want, "\n", "\n    "))
		}
		out.WriteString("\n")
	}
	if err := os.WriteFile(c.file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

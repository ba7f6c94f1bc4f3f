package embedded

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/internal/ensemble"
)

// rewrite writes what the real server answered into the contract, to be read before it is committed.
var rewrite = flag.Bool("rewrite-contract", false, "write the real server's answers into testdata/contract.txt")

// A chapter of the contract is one script with what a server answers to each line.
type chapter struct {
	title     string
	exchanges []exchange
}

type exchange struct{ line, want string }

// readContract reads testdata/contract.txt: chapters begin with "# ", what a client hears is indented.
func readContract(t *testing.T) []chapter {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.txt")
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
func (c chapter) play(t *testing.T, address, root string) []exchange {
	t.Helper()
	s := newScript(t, address, root)
	defer s.close()
	var got []exchange
	for _, e := range c.exchanges {
		got = append(got, exchange{line: e.line, want: s.run(e.line)})
	}
	return got
}

func playAll(t *testing.T, address string) []chapter {
	t.Helper()
	var played []chapter
	for i, c := range readContract(t) {
		t.Run(c.title, func(t *testing.T) {
			got := c.play(t, address, fmt.Sprintf("/chapter%d", i))
			played = append(played, chapter{title: c.title, exchanges: got})
			if diff := cmp.Diff(c.exchanges, got, cmp.AllowUnexported(exchange{})); diff != "" && !*rewrite {
				t.Error(diff)
			}
		})
	}
	return played
}

func TestTheEmbeddedEnsembleKeepsTheContract(t *testing.T) {
	playAll(t, serveEmbedded(t))
}

func TestARealServerKeepsTheContract(t *testing.T) {
	played := playAll(t, realServer(t))
	if *rewrite {
		writeContract(t, played)
	}
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
// started for this test.
func realServer(t *testing.T) string {
	t.Helper()
	if address := os.Getenv("SIDEKEEPER_TEST_ZOOKEEPER"); address != "" {
		return address
	}
	return realServerWith(t, ensemble.Options{Servers: 1, MaxClientConnections: -1})
}

func writeContract(t *testing.T, chapters []chapter) {
	t.Helper()
	var out strings.Builder
	for _, c := range chapters {
		fmt.Fprintf(&out, "# %s\n\n", c.title)
		for _, e := range c.exchanges {
			fmt.Fprintf(&out, "%s\n    %s\n", e.line, strings.ReplaceAll(e.want, "\n", "\n    "))
		}
		out.WriteString("\n")
	}
	if err := os.WriteFile("testdata/contract.txt", []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

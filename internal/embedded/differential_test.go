package embedded

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/full"
)

var (
	firstSeed  = flag.Uint64("seed", 1, "seed of the first round of the differential test")
	operations = flag.Int("operations", 10_000, "operations of the differential test")
)

const roundLength = 500 // operations with one seed in one directory

// The same random script is run on the embedded ensemble and on a real server: every reply, stat field, event and the
// order of events must be the same.
func TestRandomScriptsRunAlikeOnTheEmbeddedEnsembleAndARealServer(t *testing.T) {
	ours, theirs := serveForever(t), realServerWithoutReaping(t)
	for round := range *operations / roundLength {
		seed := *firstSeed + uint64(round)
		if !compare(t, seed, ours, theirs) {
			t.Fatalf("replay with -run %s -args -seed=%d -operations=%d", t.Name(), seed, roundLength)
		}
	}
	t.Logf("%d operations, seeds %d and up", *operations, *firstSeed)
}

// compare runs one round and says whether both answered alike. It shows the line that differs with all before it.
func compare(t *testing.T, seed uint64, ours, theirs string) bool {
	t.Helper()
	root := fmt.Sprintf("/round%d", seed)
	left, right := newScript(t, ours, root), newScript(t, theirs, root)
	defer left.close()
	defer right.close()
	random := generator{rand.New(rand.NewPCG(seed, seed))}
	var lines []string
	for range roundLength {
		line := random.line()
		lines = append(lines, line)
		got, want := left.step(line), right.step(line)
		if got != want {
			t.Errorf("seed %d, line %d:\n%s\nembedded:\n%s\nreal:\n%s",
				seed, len(lines), strings.Join(lines[max(0, len(lines)-40):], "\n"), got, want)
			return false
		}
	}
	return true
}

// step runs a line and gives what everybody heard of it.
func (s *script) step(line string) string {
	name, verb, _ := strings.Cut(line, " ")
	answers := []string{s.heard(line, verb)}
	if verb == "close" || strings.HasSuffix(answers[0], "closed") {
		_ = s.clients[name].socket.Close()
		delete(s.clients, name)
	}
	for _, other := range []string{"1", "2", "3"} {
		if s.clients[other] != nil {
			answers = append(answers, other+" heard "+s.heard(other+" ping", verb))
		}
	}
	return strings.Join(answers, "\n") + fmt.Sprintf("\nzxid %+d", s.clients["0"].zxid-s.show.base)
}

// heard runs a line. In which order a session's nodes go when it is closed is nobody's promise, so that what is heard
// of that is sorted.
func (s *script) heard(line, verb string) string {
	heard := strings.Split(s.run(line), "\n")
	if verb == "close" {
		slices.Sort(heard)
	}
	return strings.Join(heard, "\n")
}

// A generator makes random lines of scripts.
type generator struct{ *rand.Rand }

func (g generator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

// rarely gives choice in one case of n, else otherwise.
func (g generator) rarely(n int, choice, otherwise string) string {
	if g.IntN(n) == 0 {
		return choice
	}
	return otherwise
}

func (g generator) path() string {
	switch g.IntN(40) {
	case 0:
		return g.pick("foo", "/a/", "/a//b", "/a/../b", "/", "/zookeeper", "/zookeeper/config", "/a/é", "/a/\u0085")
	case 1, 2, 3:
		return fmt.Sprintf("%s/n%010d", g.pick("", "/a", "/b"), g.IntN(12))
	}
	path := "/" + g.pick("a", "b", "c")
	for g.IntN(2) == 0 && len(path) < 8 {
		path += "/" + g.pick("a", "b", "c")
	}
	return path
}

func (g generator) version() string {
	return g.rarely(2, "-1", strconv.Itoa(g.IntN(4)))
}

func (g generator) acl() string {
	return g.rarely(8, g.pick(
		"none", "31:auth:", "1:world:anyone,31:auth:", "31:ip:127.0.0.1", "1:ip:127.0.0.0/8", "31:ip:10.0.0.0/8",
		"15:world:anyone,31:auth:", "31:digest:me:016djjlksVQS5RgX3M7biBGyYwY=", "31:nothing:x"), "open")
}

func (g generator) line() string {
	verb := g.pick(
		"create", "create", "create", "create2", "create2", "container", "ttl", "delete", "delete", "delete", "delete",
		"set", "set", "set", "setacl", "getacl", "get", "get", "exists", "exists", "children", "children2", "children2",
		"multi", "multi", "multi", "multiread", "addwatch", "checkwatches", "removewatches", "setwatches",
		"setwatches2", "ephemerals", "count", "sync", "deletecontainer", "other")
	if verb == "other" {
		verb = g.pick("whoami", "auth digest me:secret", "auth digest you:secret", "close", "close", "again", "again",
			"raw", "raw", "raw", "reconfig")
	}
	client := g.pick("1", "2", "3")
	switch verb {
	case "again":
		return client + " connect session=" + client
	case "raw":
		return client + " raw " + g.garbage()
	case "multi", "multiread":
		return client + " " + verb + " " + g.steps(verb)
	case "setwatches", "setwatches2":
		return client + " " + verb + " " + g.watches(verb == "setwatches2")
	case "whoami", "close", "reconfig", "auth digest me:secret", "auth digest you:secret":
		return client + " " + verb
	}
	return client + " " + verb + " " + g.path() + g.rest(verb)
}

// rest is what comes after the path.
func (g generator) rest(verb string) string {
	switch verb {
	case "create", "create2":
		return " " + g.pick("x", "-", "''") + " " + g.pick("p", "p", "p", "e", "e", "ps", "es", "c", "bad") +
			" " + g.acl()
	case "container":
		return " x " + g.pick("c", "c", "p", "e")
	case "ttl":
		return " x " + g.pick("t", "t", "ts", "p") + " open " + g.pick("60000", "60000", "0")
	case "delete", "check":
		return " " + g.version()
	case "set":
		return " " + g.pick("x", "yy", "-") + " " + g.version()
	case "setacl":
		return " " + g.acl() + " " + g.version()
	case "get", "exists", "children", "children2":
		return g.rarely(2, " watch", "")
	case "addwatch":
		return " " + g.pick("0", "1")
	case "checkwatches", "removewatches":
		return " " + g.pick("1", "2", "3", "4", "5")
	}
	return ""
}

func (g generator) steps(verb string) string {
	verbs := []string{"create", "create", "create2", "set", "set", "delete", "delete", "check", "container"}
	if verb == "multiread" {
		verbs = []string{"get", "children"}
	}
	var steps []string
	for range g.IntN(5) {
		step := g.pick(verbs...)
		steps = append(steps, step+" "+g.path()+g.rest(step))
	}
	return strings.Join(steps, " ; ")
}

func (g generator) watches(persistent bool) string {
	keys := []string{"data", "exist", "child"}
	if persistent {
		keys = append(keys, "stay", "recursive")
	}
	words := []string{fmt.Sprint("seen=", g.IntN(600))}
	for _, key := range keys {
		words = append(words, key+"="+g.rarely(2, "", g.path()))
	}
	return strings.Join(words, " ")
}

// garbage is an operation that exists and bytes that it may not like, behind a path that is short.
func (g generator) garbage() string {
	op := g.pick("1", "2", "3", "4", "5", "6", "7", "8", "9", "12", "14", "15", "17", "18", "19", "21", "22", "101",
		"103", "104", "105", "106")
	text := g.pick("", "00", "0000", "00000002", "ffffffff", "000000022f61")
	for range g.IntN(12) {
		text += fmt.Sprintf("%02x", g.pick("\x00", "\x01", "\xff", "/"))
	}
	return strings.TrimSpace(op + " " + text)
}

// serveForever serves an ensemble that reaps nothing during a test.
func serveForever(t *testing.T) string {
	t.Helper()
	e := New(Options{ReapInterval: time.Hour})
	s, err := Serve(e, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Cleanup(s.Close)
	return s.Address()
}

func realServerWithoutReaping(t *testing.T) string {
	t.Helper()
	return realServerWith(t, ensemble.Options{Servers: 1, MaxClientConnections: -1, ContainerCheck: time.Hour})
}

func realServerWith(t *testing.T, options ensemble.Options) string {
	t.Helper()
	full.Needs(t, "a server")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e, err := ensemble.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e.Server(1).RealAddress()
}

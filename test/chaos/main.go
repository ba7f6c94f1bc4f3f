// Command chaos tests what Sidekeeper promises, by faults: on a real ensemble of three, with three sidecars and a dozen
// client processes, it plays rounds in which something goes wrong, and then has a judge look at what everybody has seen, at
// what the stores have taken, and at the ensemble's own logs.
//
// What happens in a round follows from its seed: which nemeses strike and when, who uses what. When exactly things happen
// does not; a round that has shown something is played again with the command that the report names, until it shows it again.
//
// It exits with 0 if no promise was broken, 1 if one was, and 2 if it could not tell: too many rounds were invalid, or
// something the test needs did not work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
)

// Exit codes.
const (
	exitClean = iota
	exitViolated
	exitUnable
)

// settings are what the test is told.
type settings struct {
	sidecar  string
	sleeper  string
	client   string
	nemesis  string
	workload string
	rounds   int
	seed     uint64
	profile  string
	out      string
	add      string

	restarts  int
	ticks     int
	alone     string
	curator   string
	languages string
	keep      bool

	nemeses   *regexp.Regexp
	workloads *regexp.Regexp
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == caller.Argument {
		if err := caller.Run(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "caller:", err)
			os.Exit(exitUnable)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program; it returns the exit code.
func run(ctx context.Context, arguments []string, out, logged io.Writer) int {
	s, err := parse(arguments, logged)
	if errors.Is(err, flag.ErrHelp) {
		return exitClean
	}
	var r report
	if err == nil {
		r, err = s.run(ctx, logged)
	}
	if err != nil {
		fmt.Fprintln(logged, "chaos:", err)
	}
	if len(r.Rounds) > 0 {
		r.markdown(out)
	}
	return r.code(err)
}

func parse(arguments []string, logged io.Writer) (s settings, err error) {
	flags := s.flags(logged)
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("%q: there are flags only", flags.Arg(0))
	}
	if !slices.Contains([]string{caller.Sidekeeper, caller.ZKLock}, s.client) {
		return s, fmt.Errorf("client %q: there are %s and %s", s.client, caller.Sidekeeper, caller.ZKLock)
	}
	if s.curator != "" && alones[s.alone].workload != caller.Claiming {
		return s, errors.New("-curator is for -alone claims")
	}
	if s.nemeses, err = whole(s.nemesis); err != nil {
		return s, err
	}
	if s.seed == 0 {
		s.seed = rand.Uint64N(1e9)
	}
	s.workloads, err = whole(s.workload)
	return s, err
}

// whole compiles an expression that must match a whole name; an empty one matches all.
func whole(expression string) (*regexp.Regexp, error) {
	if expression == "" {
		expression = ".*"
	}
	return regexp.Compile("^(?:" + expression + ")$")
}

func (s *settings) flags(logged io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.SetOutput(logged)
	f.StringVar(&s.sidecar, "sidecar", filepath.Join("bin", "sidekeeper"), "the program to test")
	f.StringVar(&s.sleeper, "sleeper", filepath.Join("bin", "sleeper"), "the same, built with `-tags sleeper`, for machines that sleep")
	f.StringVar(&s.client, "client", caller.Sidekeeper, "whose locks clients use: sidekeeper, or zklock, go-zookeeper's own, which must fail")
	f.StringVar(&s.nemesis, "nemesis", "", "regular expression of the nemeses to let strike: N1, N2, …")
	f.StringVar(&s.workload, "workload", "", "regular expression of the workloads to run: W1, W2, …")
	f.IntVar(&s.rounds, "rounds", 5, "how many rounds to play; 0 only adds reports up")
	f.Uint64Var(&s.seed, "seed", 0, "what the first round follows from, the next from the next number; 0 draws one")
	f.StringVar(&s.profile, "profile", bothTicks, "the ensemble's times: fast (a tick of 200 ms), real (2 s), or both, four to one")
	f.StringVar(&s.out, "out", filepath.Join(os.TempDir(), "chaos"), "directory for the report, and for histories of rounds that showed something")
	f.StringVar(&s.add, "add", "", "reports of earlier runs to add to this one's, separated by commas: their report.json")
	f.IntVar(&s.restarts, "restarts", 0, "have each round be this many restarts of sidecars, under callers in several languages, and nothing else")
	f.StringVar(&s.languages, "languages", strings.Join(languages(), ","), "whose clients they use then, by commas: three processes each")
	f.IntVar(&s.ticks, "ticks", 0, "have each round last until about so many ticks of a crontab were due, with kills and cuts, and nothing else")
	f.StringVar(&s.alone, "alone", "", "have each round be minutes of faults among one kind of callers: shares of a set of 500 items, or claims")
	f.StringVar(&s.curator, "curator", "", "the folder with Curator's jars: have it wait for the locks that are claimed, with -alone claims")
	f.BoolVar(&s.keep, "keep", false, "whether to keep the histories and the servers' logs of all rounds")
	return f
}

// run plays all rounds, and returns the report, which is also written; it is as complete as it got if there is an error.
func (s *settings) run(ctx context.Context, logged io.Writer) (report, error) {
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return report{}, err
	}
	var r report
	for _, path := range strings.FieldsFunc(s.add, func(c rune) bool { return c == ',' }) {
		if err := r.add(path); err != nil {
			return r, err
		}
	}
	c := &campaign{settings: s, logged: logged, report: &r}
	played := c.play(ctx)
	return r, errors.Join(played, r.write(s.out))
}

// Command bench measures Sidekeeper against what stands below it, on real ZooKeeper servers on this machine.
//
// Every experiment sets several ways of locking side by side: in each round each of them does the same, one after the
// other and in another order than in the round before, so that what disturbs the machine disturbs all of them. Ratios
// are taken within a round, and their median is shown; everything else is over all rounds. On a machine
// where clients, sidecar and servers share the processors, only the ratios say something.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// settings are what the bench is told.
type settings struct {
	sidecar  string
	before   string
	only     *regexp.Regexp
	servers  *regexp.Regexp
	attacks  *regexp.Regexp
	quick    bool
	markdown bool
	extra    string
	chart    string
	profiles string
	echo     string
	attack   string
	victim   string
	sharer   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the program.
func run(ctx context.Context, arguments []string, out, logged io.Writer) error {
	settings, err := parse(arguments, logged)
	if err != nil {
		return err
	}
	if settings.echo != "" {
		return serveEcho(settings.echo, os.Stdin)
	}
	if settings.attack != "" {
		return serveAttack(settings.attack, settings.victim, os.Stdin, out)
	}
	if settings.sharer != "" {
		return serveSharer(ctx, settings.sharer, out)
	}
	var all findings
	for _, size := range []int{1, 3} {
		found, err := runOn(ctx, settings, size, out, logged)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	judged, err := all.judge(goals())
	if judged != nil {
		judged.print(out, settings.markdown)
	}
	if settings.chart == "" || err != nil {
		return err
	}
	drawn, err := all.chart()
	if err != nil {
		return err
	}
	return os.WriteFile(settings.chart, []byte(drawn), 0o644)
}

func parse(arguments []string, logged io.Writer) (settings, error) {
	var s settings
	var only, servers, attacks string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(logged)
	flags.StringVar(&s.sidecar, "sidecar", filepath.Join("bin", "sidekeeper"), "the program to measure")
	flags.StringVar(&s.before, "before", "", "the program of an older build, to be measured beside it in the same rounds of lock pairs")
	flags.StringVar(&only, "run", "", "regular expression of the experiments to do: pairs-1, pairs-8, pairs-64, threads-64, ways, handover-2, handover-16, handover-128, permits-16, sequence-1, sequence-8, sequence-64, joins-64, killed, watch-1, watch-100, watch-1000, idle, many, regions, shares, attacks")
	flags.StringVar(&servers, "on", "", "regular expression of what to do them on: standalone, ensemble")
	flags.BoolVar(&s.quick, "quick", false, "whether to do a fraction of it, to see that it works")
	flags.BoolVar(&s.markdown, "markdown", false, "whether to print tables in Markdown")
	flags.StringVar(&s.chart, "chart", "", "file to draw the rates of pairs-64 into, in SVG")
	flags.StringVar(&s.extra, "serve", "", "further flags for the sidecar, separated by blanks")
	flags.StringVar(&s.profiles, "profiles", "", "directory to put a profile of the sidecar into, one for each experiment with lock pairs or joins; profiled figures are not to be quoted")
	flags.StringVar(&s.echo, "echo", "", "serve bare gRPC on this socket until the input ends, and do nothing else; the bench starts itself so")
	flags.StringVar(&attacks, "attacks", "", "regular expression of the attacks to make: "+strings.Join(namesOf(allAttacks()), ", "))
	flags.StringVar(&s.attack, "attack", "", "attack a sidecar in this way until the input ends, and do nothing else; the bench starts itself so")
	flags.StringVar(&s.victim, "victim", "", "what to attack, in JSON")
	flags.StringVar(&s.sharer, "sharer", "", "share items as this member, in JSON, until it is interrupted, and do nothing else; the bench starts itself so")
	err := flags.Parse(arguments)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q: there are flags only", flags.Arg(0))
	}
	if err == nil {
		s.only, err = regexp.Compile("^(" + orAll(only) + ")$")
	}
	if err == nil {
		s.servers, err = regexp.Compile("^(" + orAll(servers) + ")$")
	}
	if err == nil {
		s.attacks, err = regexp.Compile("^(" + orAll(attacks) + ")$")
	}
	return s, err
}

func orAll(expression string) string {
	if expression == "" {
		return ".*"
	}
	return expression
}

// runOn does the chosen experiments on an ensemble of so many servers, and prints what they find.
func runOn(ctx context.Context, settings settings, size int, out, logged io.Writer) (all findings, err error) {
	where := map[int]string{1: standalone, 3: onEnsemble}[size]
	if !settings.servers.MatchString(where) {
		return nil, nil
	}
	var chosen []experiment
	for _, e := range experiments(settings.quick) {
		if settings.only.MatchString(e.name) && (size > 1 || e.name != spread) {
			chosen = append(chosen, e)
		}
	}
	if len(chosen) == 0 {
		return nil, nil
	}
	stage, err := build(ctx, settings, size)
	if err != nil {
		return nil, err
	}
	defer stage.close()
	for _, e := range chosen {
		fmt.Fprintf(logged, "%s, %s …\n", e.name, where)
		table, err := e.run(ctx, stage)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", e.name, where, err)
		}
		table.title = e.title + ", " + where
		table.print(out, settings.markdown)
		all = append(all, finding{e.name, where, table})
	}
	return all, nil
}

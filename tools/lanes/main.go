// Lanes runs the tests of the repository in lanes: parts with inputs of their own, which stand in its table. Each lane runs targets of the
// Makefile. A lane that passed with the same inputs need not run again: its record lies in the tree, one file a lane, and only this program
// writes it. A record holds for the very files and versions of programs that it names. At the end of each run stands a table of seconds.
//
//	lanes run            what a commit must pass; with names of lanes, those alone
//	lanes run -all       every lane, whatever is recorded
//	lanes run -nightly   what takes hours, too; it goes on where an earlier run of the same tree has stopped
//	lanes plan           which lanes would run, and why
//	lanes packages LANE  the packages of Go that belong to a lane
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lanes:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("say run, plan or packages LANE")

// run is the program.
func run(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("lanes", flag.ContinueOnError)
	every := flags.Bool("all", false, "run every lane, whatever is recorded")
	nightly := flags.Bool("nightly", false, "run what takes hours, too")
	if len(arguments) == 0 {
		return errUsage
	}
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	root, err := git(ctx, ".", "", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	much := commits
	switch {
	case *nightly:
		much = night
	case *every:
		much = all
	}
	switch {
	case arguments[0] == "run":
		return runLanes(ctx, root, much, flags.Args(), out)
	case arguments[0] == "plan" && flags.NArg() == 0:
		_, steps, err := look(ctx, root, much)
		tellPlan(out, steps)
		return err
	case arguments[0] == "packages" && flags.NArg() == 1:
		return tellPackages(ctx, root, flags.Arg(0), out)
	}
	return errUsage
}

// look takes the tree and the versions of the programs that are there, and plans what runs.
func look(ctx context.Context, root string, much extent) (workplace, []*step, error) {
	t, err := snapshot(ctx, root)
	if err != nil {
		return workplace{}, nil, err
	}
	tools, err := toolsOf(ctx, root, table)
	if err != nil {
		return workplace{}, nil, err
	}
	w := workplace{tree: t, tools: tools}
	steps, err := plan(ctx, w, table, much)
	return w, steps, err
}

// only leaves out the lanes that have other names; without names it leaves none out.
func only(steps []*step, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(steps, func(s *step) bool { return s.lane.Name == name }) {
			return fmt.Errorf("there is no lane %q", name)
		}
	}
	for i := range steps {
		if s := steps[i]; s.runs && len(names) > 0 && !slices.Contains(names, s.lane.Name) {
			s.runs, s.why = false, "it was not asked for"
		}
	}
	return nil
}

func tellPlan(out io.Writer, steps []*step) {
	for _, s := range steps {
		verb := "runs"
		if !s.runs {
			verb = "does not run"
		}
		fmt.Fprintf(out, "lane %s %s: %s\n", s.lane.Name, verb, s.why)
	}
}

// runLanes runs what the plan says, and tells how long everything took, also if something has failed.
func runLanes(ctx context.Context, root string, much extent, names []string, out io.Writer) error {
	before, steps, err := look(ctx, root, much)
	if err == nil {
		err = only(steps, names)
	}
	if err != nil {
		return err
	}
	tellPlan(out, steps)
	together := 4 // tests wait for most of their time, and a machine may have two processors
	if much == night {
		together = 1 // rounds of faults
	}
	results := (&runner{root: root, out: out}).run(ctx, steps, together)
	report(out, steps, results)
	var table bytes.Buffer
	tabulate(&table, steps, results)
	err = os.MkdirAll(filepath.Join(root, "bin"), 0o755) //nolint:gosec // as other folders of what is built
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "bin", "times.tsv"), table.Bytes(), 0o644) //nolint:gosec // people read it
	}
	if os.Getenv("CI") == "" { // what CI has run goes away with its clone
		err = errors.Join(err, remember(context.WithoutCancel(ctx), before, steps, results))
	}
	if slices.ContainsFunc(results, func(r result) bool { return r.err != nil }) {
		err = errors.Join(err, errors.New("not all has passed"))
	}
	return err
}

// tellPackages lists the packages of the root's module whose folders belong to a lane.
func tellPackages(ctx context.Context, root, name string, out io.Writer) error {
	if !slices.ContainsFunc(table, func(l Lane) bool { return l.Name == name }) {
		return fmt.Errorf("there is no lane %q", name)
	}
	command := exec.CommandContext(ctx, "go", "list", "-f", "{{.ImportPath}} {{.Dir}}", "./...")
	command.Dir = root
	said, err := command.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(said)) {
		path, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		folder, err := filepath.Rel(root, folder)
		if err != nil {
			return err
		}
		if lane, _ := owner(table, filepath.ToSlash(folder)+"/doc.go"); lane != nil && lane.Name == name {
			fmt.Fprintln(out, path)
		}
	}
	return nil
}

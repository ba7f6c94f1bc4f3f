package documents

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/test/support/full"
)

var rewrite = flag.Bool("write", false, "write into the documents what their commands print now, where that differs")

func TestMain(m *testing.M) {
	full.AllNeed("terminals, and the programs that documents show")
	code := m.Run()
	if folder, _ := programs(); folder != "" {
		os.RemoveAll(folder)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// Compilers take all processors for a while, so these documents are played before all others, and one after the other.
func TestAFirstLockIsTakenAndLostInEachLanguage(t *testing.T) {
	played := 0
	for _, document := range documents(t) {
		if document.installs() {
			played++
			t.Run(document.path, func(t *testing.T) { document.play(t, document.steps(t)) })
		}
	}
	if played != 4 {
		t.Errorf("%d documents install a client, want one for each language", played)
	}
}

func TestEveryCommandThatADocumentShowsRuns(t *testing.T) {
	t.Parallel()
	played := 0
	for _, document := range documents(t) {
		steps := document.steps(t)
		if len(steps) == 0 || document.installs() {
			continue
		}
		played++
		t.Run(document.path, func(t *testing.T) {
			t.Parallel()
			document.play(t, steps)
		})
	}
	if played < 5 {
		t.Errorf("only %d documents show commands that can be run here", played)
	}
}

// A document is one that people read.
type document struct {
	path  string // from the repository's root
	lines []string
}

// installs says whether the reader installs a client from the clone.
func (d document) installs() bool {
	return strings.Contains(strings.Join(d.lines, "\n"), "$CLONE/clients/")
}

// written is how a document begins that a program has written, from the help or from the protos. What it shows is tried
// where it comes from.
const written = "<!-- Written "

// outside are the folders that hold no documents of ours.
var outside = []string{".git", ".cache", "bin", "node_modules", "dist", "target"}

func documents(t *testing.T) []document {
	t.Helper()
	var found []document
	root := filepath.Join("..", "..")
	must(t, filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(outside, entry.Name()):
			return filepath.SkipDir
		case filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(name)
		if strings.HasPrefix(string(text), written) {
			return err
		}
		name, _ = filepath.Rel(root, name)
		found = append(found, document{path: filepath.ToSlash(name), lines: strings.Split(string(text), "\n")})
		return err
	}))
	return found
}

// steps are the commands of the document that are run here.
func (d document) steps(t *testing.T) []step {
	t.Helper()
	var steps []step
	for _, block := range blocksOf(t, d.path, d.lines) {
		for _, step := range block.steps(t, d.path) {
			if whoRuns(step.command) == nil {
				steps = append(steps, step)
			}
		}
	}
	return steps
}

func (d document) play(t *testing.T, steps []step) {
	t.Helper()
	s := newScene(t, d)
	if !slices.ContainsFunc(steps, func(s step) bool { return strings.HasPrefix(standIn(s.command), "sidekeeper dev") }) {
		s.begin(t)
	}
	var found []finding
	for i, step := range steps {
		text, good := s.play(t, step, step.fate(steps[i+1:]))
		switch {
		case good:
		case *rewrite && !step.silent:
			found = append(found, finding{step: step, text: text})
		default:
			t.Fatalf("%s:%d: %s\nshows\n%s\nnot\n%s", d.path, step.line+1, step.command, text, strings.Join(step.shown, "\n"))
		}
	}
	d.rewrite(t, found)
}

// A fate is what becomes of a command while the next ones are typed.
type fate int

const (
	ends        fate = iota // before anything else is typed
	mayGoOn                 // until the end of the document
	goesOnLater             // the document comes back to it
)

func (s step) fate(later []step) fate {
	next := slices.IndexFunc(later, func(other step) bool { return other.terminal == s.terminal })
	switch {
	case next >= 0 && (later[next].command == interrupt || later[next].command == goesOn):
		return goesOnLater
	case s.command == interrupt, s.command == goesOn && len(s.shown) == 0:
		return ends
	case next < 0 && s.terminal != "":
		return mayGoOn
	}
	return ends
}

// standIn is what is typed in place of a command: `make run` builds the program, which is built here already, and
// `sidekeeper dev` listens on a port that is free, as if it were its own.
func standIn(command string) string {
	bare, _, _ := strings.Cut(command, "  #")
	switch bare = strings.TrimSpace(bare); {
	case bare == "make run":
		return standIn("sidekeeper dev")
	case strings.HasPrefix(bare, "sidekeeper dev") && !strings.Contains(bare, "--listen"):
		return bare + " --listen 127.0.0.1:7181"
	}
	return command
}

// play types one command, and returns what it shows and whether that is what the document says.
func (s *scene) play(t *testing.T, step step, fate fate) (text string, good bool) {
	t.Helper()
	w := s.terminal(t, step.terminal)
	switch step.command {
	case interrupt:
		w.Send(syscall.SIGINT)
	case goesOn:
	default:
		if w.busy {
			t.Fatalf("line %d: the terminal %q is busy", step.line+1, step.terminal)
		}
		command := s.bindings.meant(s.truth(standIn(step.command)))
		if step.terminal == "" && strings.HasPrefix(command, "export ") {
			s.exports = append(s.exports, command)
		}
		w.enter(command)
	}
	if step.silent {
		return s.succeeds(t, w, step.command)
	}
	return s.compare(t, w, step, fate)
}

// succeeds waits for the end of a command whose output the document does not show; one that lasts until
// Ctrl-C gets that.
func (s *scene) succeeds(t *testing.T, w *terminal, command string) (text string, good bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patienceFor(command))
	defer cancel()
	for _, lasting := range untilInterrupted {
		if lasting.command.MatchString(command) {
			begun := w.output.await(ctx, func(text string, _ bool, _ string) bool { return strings.Contains(text, lasting.begun) })
			if w.Send(syscall.SIGINT); !begun {
				break
			}
		}
	}
	var code string
	ended := w.output.await(ctx, func(shown string, ended bool, status string) bool {
		text, code = shown, status
		return ended
	})
	w.busy = !ended
	warns := code == "2" && strings.Contains(command, "sidekeeper doctor") // as it does of an ensemble without credentials
	return text, ended && (code == "0" || warns)
}

// patienceFor is how long a command may take: those of package managers download and compile.
func patienceFor(command string) time.Duration {
	if building.MatchString(command) {
		return 10 * time.Minute
	}
	return patient
}

var building = regexp.MustCompile(`(^|/)(go|mvn|npm|pip) `)

// compare waits until what is shown is what the document shows, and all of it if the command is to end.
func (s *scene) compare(t *testing.T, w *terminal, step step, fate fate) (text string, good bool) {
	t.Helper()
	if len(step.shown) == 0 && fate != ends && !*rewrite {
		if fate == mayGoOn {
			t.Fatalf("line %d: nothing is shown of a command that goes on, now or later, so that nobody knows whether it works", step.line+1)
		}
		return "", true
	}
	patience := patient
	if *rewrite {
		patience = 4 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begun, whole := patternOf(step.shown, ""), patternOf(step.shown, `\z`)
	var match []int
	good = w.output.await(ctx, func(shown string, ended bool, status string) bool {
		text = s.shown(shown)
		if ended && text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if w.busy = !ended; !ended {
			match = begun.FindStringSubmatchIndex(text)
			return fate != ends && match != nil && len(step.shown) > 0
		}
		match = whole.FindStringSubmatchIndex(text)
		if match == nil && fate == goesOnLater { // what is over already may have shown what is compared then
			match = begun.FindStringSubmatchIndex(text)
		}
		if status != "0" && len(step.shown) == 0 && step.command != interrupt {
			match = nil
		}
		return true
	})
	if !good || match == nil {
		if *rewrite {
			w.output.consume(rawLength(w.output, strings.Count(text, "\n")))
		}
		return text, false
	}
	w.output.consume(rawLength(w.output, strings.Count(text[:match[1]], "\n")))
	if err := s.bindings.bind(begun.groups, groups(text, match)); err != nil {
		t.Errorf("line %d: %s: %v", step.line+1, step.command, err)
	}
	return text, true
}

// rawLength is how long so many lines are, of what was not yet compared.
func rawLength(o *output, lines int) int {
	length := 0
	for line := range strings.Lines(o.uncompared()) {
		if lines == 0 {
			break
		}
		length += len(line)
		lines--
	}
	return length
}

func groups(text string, match []int) []string {
	var found []string
	for i := 2; i < len(match); i += 2 {
		found = append(found, text[match[i]:match[i+1]])
	}
	return found
}

// A finding is what a command has shown in place of what the document says.
type finding struct {
	step step
	text string
}

// rewrite puts what was found into the document.
func (d document) rewrite(t *testing.T, found []finding) {
	t.Helper()
	lines := slices.Clone(d.lines)
	for _, f := range slices.Backward(found) {
		shown := strings.Split(strings.TrimSuffix(f.text, "\n"), "\n")
		if f.text == "" {
			shown = nil
		}
		lines = slices.Replace(lines, f.step.below, f.step.below+len(f.step.shown), shown...)
		t.Logf("%s:%d: %s now shows\n%s", d.path, f.step.line+1, f.step.command, f.text)
	}
	if len(found) > 0 {
		must(t, os.WriteFile(filepath.Join("..", "..", d.path), []byte(strings.Join(lines, "\n")), 0o644))
	}
}

// untilInterrupted are the commands among those without output that go on until Ctrl-C, and what they show when they have
// begun.
var untilInterrupted = []struct {
	command *regexp.Regexp
	begun   string
}{
	{regexp.MustCompile(`^(bin/)?sidekeeper serve `), "listening"},
}

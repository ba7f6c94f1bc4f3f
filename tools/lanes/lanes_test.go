package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryFileBelongsToALaneThatRuns(t *testing.T) {
	root, err := git(t.Context(), ".", "", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	now, err := snapshot(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := now.files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range mistakes(table, files) {
		t.Error(wrong)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	nightly, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "nightly.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range table {
		if !slices.Contains(strings.Fields(string(nightly)), lane.Name) {
			t.Errorf("the nightly workflow leaves lane %s out", lane.Name)
		}
		for _, target := range slices.Concat(lane.Targets, lane.Covers) {
			if !bytes.Contains(makefile, []byte("\n"+target+":")) {
				t.Errorf("lane %s runs %s, which is no target of the Makefile", lane.Name, target)
			}
		}
	}
}

func TestATableThatLeavesSomethingOutIsRefused(t *testing.T) {
	files := []string{"Makefile", "recipes/lock.go", "test/spec/Lock.tla"}
	whole := []Lane{{Name: "core", Owns: []string{"recipes"}}, {Name: "models", Owns: []string{"test/spec"}}}
	for _, c := range []struct {
		what  string
		lanes []Lane
		files []string
		want  string
	}{
		{"nothing is wrong", whole, files, ""},
		{"a record belongs to no lane", whole, append(slices.Clone(files), ".ci/passed/models"), ""},
		{"a lane is deleted", whole[:1], files, "test/spec/Lock.tla belongs to no lane: see tools/lanes/table.go"},
		{"a folder has no lane", whole, append(slices.Clone(files), "recipes2/x.go"), "recipes2/x.go belongs to no lane: see tools/lanes/table.go"},
		{
			"two lanes have one folder", append(slices.Clone(whole), Lane{Name: "more", Owns: []string{"recipes"}}), files,
			"recipes belongs to two lanes, core and more",
		},
		{"a folder is gone", whole, files[:2], "lane models names test/spec, which does not exist"},
		{
			"what is read is gone", append(slices.Clone(whole), Lane{Name: "more", Reads: []string{"proto"}}), files,
			"lane more names proto, which does not exist",
		},
	} {
		if got := strings.Join(mistakes(c.lanes, c.files), "; "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

// A repository is one that a test may change.
type repository struct {
	*testing.T
	root  string
	lanes []Lane
}

// newRepository has all that is common to lanes, and a lane for models whose target passes.
func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{T: t, root: t.TempDir(), lanes: []Lane{
		{Name: "core", Owns: []string{"recipes"}, Targets: []string{"core"}},
		{Name: "models", When: Changed, Owns: []string{"test/spec"}, Needs: []string{"java"}, Targets: []string{"models"}},
		{Name: "kube", When: Nightly, Targets: []string{"kube"}},
	}}
	for _, path := range common {
		if path == ".ci" {
			path += "/some"
		}
		r.write(path, "of all lanes\n")
	}
	r.write(".gitignore", "/bin/\n")
	r.write("Makefile", "core models:\n\t@echo ok\tpackage/$@\t1.5s\n")
	r.write("tools/need", "#!/bin/sh\necho java 17\n")
	r.write("recipes/lock.go", "package recipes\n")
	r.write("test/spec/Lock.tla", "---- MODULE Lock ----\n")
	if err := os.Chmod(filepath.Join(r.root, "tools", "need"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{
		{"init", "--quiet"},
		{"add", "--all"},
		{"-c", "user.name=n", "-c", "user.email=e@localhost", "commit", "--quiet", "--message=m"},
	} {
		command := exec.CommandContext(t.Context(), "git", arguments...)
		command.Dir = r.root
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git: %v\n%s", err, said)
		}
	}
	return r
}

func (r repository) write(path, text string) {
	r.Helper()
	path = filepath.Join(r.root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.Fatal(err)
	}
	mode := os.FileMode(0o600)
	if there, err := os.Stat(path); err == nil {
		mode = there.Mode()
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		r.Fatal(err)
	}
}

func (r repository) read(path string) string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(path)))
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// plan tells which lanes run, and why.
func (r repository) plan(much extent) (workplace, []*step, string) {
	r.Helper()
	t, err := snapshot(r.Context(), r.root)
	if err != nil {
		r.Fatal(err)
	}
	tools, err := toolsOf(r.Context(), r.root, r.lanes)
	if err != nil {
		r.Fatal(err)
	}
	w := workplace{tree: t, tools: tools}
	steps, err := plan(r.Context(), w, r.lanes, much)
	if err != nil {
		r.Fatal(err)
	}
	var told bytes.Buffer
	tellPlan(&told, steps)
	return w, steps, told.String()
}

// make runs what the plan says, and records what passed.
func (r repository) make(much extent) (results []result, said string) {
	r.Helper()
	w, steps, _ := r.plan(much)
	var out bytes.Buffer
	results = (&runner{root: r.root, out: &out}).run(r.Context(), steps, 2)
	if err := remember(r.Context(), w, steps, results); err != nil {
		out.WriteString(err.Error())
	}
	report(&out, steps, results)
	return results, out.String()
}

// expect fails unless a plan has this line of the lane for models.
func (r repository) expect(when, line string) {
	r.Helper()
	if _, _, told := r.plan(commits); !strings.Contains(told, "lane models "+line) {
		r.Errorf("%s: got\n%swant %q", when, told, line)
	}
}

const rests = "does not run: .ci/passed/models says that it passed with these inputs"

func TestALaneRunsUnlessItsRecordHolds(t *testing.T) {
	r := newRepository(t)
	r.expect("at first", "runs: there is no record")
	if _, said := r.make(commits); !strings.Contains(said, "targets: 2 passed, 0 failed") {
		t.Fatal(said)
	}
	r.expect("when it has passed", rests)
	whole := r.read(".ci/passed/models")

	for _, c := range []struct{ what, file, text, want string }{
		{"a model has changed", "test/spec/Lock.tla", "---- MODULE Locks ----\n", "changed since it passed: test/spec"},
		{"a model is new", "test/spec/New.tla", "---- MODULE New ----\n", "changed since it passed: test/spec"},
		{"the Makefile has changed", "Makefile", "core models:\n", "changed since it passed: Makefile"},
		{"a tool of ours has changed", "tools/lanes", "x", "changed since it passed: tools/lanes"},
		{"CI runs otherwise", ".ci/run", "x", "changed since it passed: .ci"},
		{
			"a record is stale", ".ci/passed/models", strings.Replace(whole, "input test/spec ", "input test/spec 0", 1),
			"changed since it passed: test/spec",
		},
		{"a record has lost a line", ".ci/passed/models", whole[:strings.LastIndex(strings.TrimSpace(whole), "\n")+1], "changed since it passed: "},
		{"a record has a line too many", ".ci/passed/models", whole + "all is well\n", "changed since it passed: is"},
		{"a record is empty", ".ci/passed/models", "", "there is no record"},
		{"another version of Java", "tools/need", "#!/bin/sh\necho java 21\n", "changed since it passed: tools/need, java"},
	} {
		path := filepath.Join(r.root, filepath.FromSlash(c.file))
		before, err := os.ReadFile(path)
		r.write(c.file, c.text)
		r.expect(c.what, "runs: "+c.want)
		if err != nil {
			os.Remove(path)
		} else {
			r.write(c.file, string(before))
		}
		r.expect("after "+c.what, rests)
	}

	r.write("recipes/lock.go", "package recipes // otherwise\n")
	r.expect("when what it does not read has changed", rests)
	_, _, told := r.plan(all)
	if !strings.Contains(told, "lane models runs: all lanes run") || !strings.Contains(told, "lane kube does not run: it runs at night") {
		t.Errorf("with -all: got\n%s", told)
	}
	if _, _, told := r.plan(night); strings.Count(told, " runs: ") != 3 {
		t.Errorf("at night: got\n%s", told)
	}
}

func TestALaneWithoutItsProgramsDoesNotRestOnARecord(t *testing.T) {
	r := newRepository(t)
	r.make(commits)
	r.expect("when it has passed", rests)
	r.lanes[1].Needs = []string{"java", "node"}
	r.expect("when it takes more", rests) // that is said by the table, which is an input itself
	r.write("tools/need", "#!/bin/sh\necho java missing\n")
	r.expect("when Java is missing", "runs: changed since it passed: tools/need, java")
}

func TestWhatFailsIsNotRecordedAndKeepsNothingFromRunning(t *testing.T) {
	r := newRepository(t)
	r.write("Makefile", "core:\n\t@echo '--- FAIL: TestX (0.1s)'; echo 'FAIL\tpackage/core\t2.5s'; exit 1\n"+
		"models:\n\t@echo 'ok  \tpackage/models\t1.5s'\n")
	results, said := r.make(commits)
	for _, want := range []string{
		"core failed", "TestX", "targets: 1 passed, 1 failed", "package/core", "package/models", "not run: kube: it runs at night",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said in\n%s", want, said)
		}
	}
	if len(results) != 2 || results[0].err == nil || results[1].err != nil {
		t.Errorf("got %+v", results)
	}
	r.expect("when its own targets have passed", rests)

	r.write("Makefile", "core:\nmodels:\n\t@exit 1\n")
	r.make(commits)
	r.expect("when it has failed", "runs: changed since it passed: Makefile")
}

func TestWhatIsSaidOfAFailureStandsAtTheEnd(t *testing.T) {
	for _, c := range []struct{ what, said, want string }{
		{
			"a test of Go", "{\"level\":\"info\"}\n--- FAIL: TestX (0.1s)\n    x_test.go:3: got 1\n\nFAIL\nFAIL\tx\t1s\n",
			"--- FAIL: TestX (0.1s)|x_test.go:3: got 1|FAIL",
		},
		{
			"the last word of a test that says much, and not the next one's",
			"--- FAIL: TestX (0.1s)\n    1\n    2\n    3\n    4\n    5\n    6\n--- FAIL: TestY (0.1s)\n    7\n",
			"--- FAIL: TestX (0.1s)|1|4|5|6|--- FAIL: TestY (0.1s)",
		},
		{"an error of Maven", "a\n[ERROR] 1\n2\n3\n4\n5\n6\n7\n[ERROR] 8\n", "[ERROR] 1|2|5|6|7|[ERROR] 8"},
		{"none that is known", "1\n2\n3\n4\n5\n6\n7\n", "2|3|4|5|6|7"},
		{"a long line", strings.Repeat("x", 2*quotedRow), strings.Repeat("x", quotedRow)},
	} {
		var r result
		for line := range strings.Lines(c.said) {
			r.note(line)
		}
		if got := strings.Join(r.why, "|"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

func TestALaneThatChangesWhileItRunsIsNotRecorded(t *testing.T) {
	r := newRepository(t)
	r.write("Makefile", "core:\nmodels:\n\t@echo more >>test/spec/Lock.tla\n")
	if _, said := r.make(commits); !strings.Contains(said, "lane models is not recorded: changed while it ran: test/spec") {
		t.Error(said)
	}
	r.expect("afterwards", "runs: there is no record")
}

func TestTheNightGoesOnWhereItHasStopped(t *testing.T) {
	r := newRepository(t)
	r.write("Makefile", "core models:\n\t@true\nkube:\n\t@exit 1\n")
	r.make(night)
	_, _, told := r.plan(night)
	if strings.Count(told, "does not run: bin/nightly/") != 2 || !strings.Contains(told, "lane kube runs: there is no record") {
		t.Errorf("got\n%s", told)
	}
	r.write("recipes/lock.go", "package recipes // otherwise\n")
	if _, _, told := r.plan(night); strings.Count(told, " runs: ") != 3 {
		t.Errorf("with another tree: got\n%s", told)
	}
}

func TestALaneThatWasNotAskedForDoesNotRun(t *testing.T) {
	steps := []*step{{runs: true, lane: &Lane{Name: "core"}}, {runs: true, lane: &Lane{Name: "java"}}}
	if err := only(steps, []string{"cores"}); err == nil {
		t.Error("a lane that does not exist is asked for")
	}
	if err := only(steps, nil); err != nil || !steps[0].runs || !steps[1].runs {
		t.Errorf("without names: got %+v, %v", steps, err)
	}
	if err := only(steps, []string{"java"}); err != nil || steps[0].runs || !steps[1].runs {
		t.Errorf("with a name: got %+v, %v", steps, err)
	}
}

func TestTargetsThatOthersCoverOrThatBuildInOneFolder(t *testing.T) {
	steps := []*step{
		{runs: true, lane: &Lane{Name: "conformance", Targets: []string{"conformance-java", "one-lock"}, Builds: []string{"clients"}}},
		{runs: true, lane: &Lane{Name: "java", Targets: []string{"java"}, Covers: []string{"conformance-java"}, Builds: []string{"clients"}}},
		{runs: false, lane: &Lane{Name: "python", Targets: []string{"python"}, Covers: []string{"one-lock"}}},
	}
	results := targets(steps)
	if len(results) != 2 || results[0].target != "one-lock" || results[1].target != "java" {
		t.Fatalf("got %+v", results)
	}
	if !results[0].disturbs(&results[1]) {
		t.Error("both build in one folder, and may run together")
	}
	other := result{target: "models"}
	if other.disturbs(&results[0]) {
		t.Error("what builds nowhere may run beside all")
	}
}

// A lane of the sidecar's tests rests on all that these are compiled from.
func TestWhatALaneOfTheSidecarIsCompiledFromIsItsInput(t *testing.T) {
	const module = "github.com/sidekeeper/sidekeeper/"
	root, err := git(t.Context(), ".", "", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"simulation", "endtoend", "peers"} {
		lane := &table[slices.IndexFunc(table, func(l Lane) bool { return l.Name == name })]
		var packages strings.Builder
		if err := tellPackages(t.Context(), root, name, &packages); err != nil {
			t.Fatal(err)
		}
		list := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"list", "-deps", "-test"}, strings.Fields(packages.String()))...)
		list.Dir = root
		said, err := list.Output()
		if err != nil || packages.Len() == 0 {
			t.Fatalf("%s: %q, %v", name, &packages, err)
		}
		inputs := slices.Concat(common, lane.Owns, lane.Reads)
		for line := range strings.Lines(string(said)) {
			path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			folder, own := strings.CutPrefix(strings.TrimSuffix(path, ".test"), module)
			folder = strings.TrimSuffix(folder, "_test")
			if own && !slices.ContainsFunc(inputs, func(input string) bool { return covers(input, folder) }) {
				t.Errorf("lane %s is compiled from %s, which is none of its inputs", name, folder)
			}
		}
	}
}
